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

// userKey is the key of ForUser in a context.
type userKey struct{}

// ForUser returns a context whose queries are made for a user who waits. A Resolver does not
// answer them with a query of background work that is already in progress: it may have been sent
// before the user changed a record.
func ForUser(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, true)
}

// IsForUser reports whether the context comes from ForUser.
func IsForUser(ctx context.Context) bool {
	return ctx.Value(userKey{}) != nil
}
