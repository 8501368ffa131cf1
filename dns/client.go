package dns

import "context"

// clientKey is the key of a client in a context.
type clientKey struct{}

// ForClient returns a context whose questions are asked on behalf of a client, such as
// a tenant. A Resolver may divide its capacity fairly between clients, so that the
// questions of one cannot hold up those of another.
func ForClient(ctx context.Context, client int64) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, 0 for none.
func ClientOf(ctx context.Context) int64 {
	client, _ := ctx.Value(clientKey{}).(int64)
	return client
}
