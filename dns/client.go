package dns

import "context"

// clientKey is the key of a client in a context.
type clientKey struct{}

// ForClient returns a context whose queries are attributed to a client, such as a tenant.
// A Resolver may share its capacity fairly between clients, so that one client cannot
// block the others.
func ForClient(ctx context.Context, client int64) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, or 0.
func ClientOf(ctx context.Context) int64 {
	client, _ := ctx.Value(clientKey{}).(int64)
	return client
}
