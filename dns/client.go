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

// anewKey is the key of Anew in a context.
type anewKey struct{}

// Anew returns a context whose queries are sent after it was made: they do not share the
// answer to a query that is already in progress. It is for a caller who has just changed a
// record and asks what DNS answers now.
func Anew(ctx context.Context) context.Context {
	return context.WithValue(ctx, anewKey{}, true)
}

// IsAnew reports whether the context comes from Anew.
func IsAnew(ctx context.Context) bool {
	return ctx.Value(anewKey{}) != nil
}
