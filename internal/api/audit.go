package api

import (
	"context"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/clientaddr"
)

// noteTimeout bounds the writing of an entry, which goes on when the client leaves.
const noteTimeout = 5 * time.Second

// audit writes a change that was made into the team's audit log. Where that fails the
// change stands all the same: the entry goes to the log of the program.
func (a *API) audit(c *call, action, target string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), noteTimeout)
	defer cancel()
	err := c.team.Note(ctx, dmarcd.AuditEntry{
		Actor: "token " + c.token.String(), Action: action, Target: target, Address: clientaddr.Of(c.r),
	})
	if err != nil {
		a.options.Log.ErrorContext(ctx, "audit entry not written", "error", err, "token", c.token.String(), "action", action, "target", target)
	}
}
