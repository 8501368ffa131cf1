package spf

import (
	"context"

	"github.com/dmarcd/dmarcd/dns"
)

// CheckUnlimited is Check without the limits of lookups.
func CheckUnlimited(ctx context.Context, r dns.Resolver, id Identity) Evaluation {
	return check(ctx, r, id, 1<<30, 1<<30)
}
