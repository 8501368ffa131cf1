package backend

import (
	"context"
	"log/slog"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

// noteTimeout bounds the writing of an entry, which goes on when the browser
// leaves.
const noteTimeout = 5 * time.Second

// book is an audit log: that of a team, or that of the installation.
type book interface {
	Note(ctx context.Context, entry dmarcd.AuditEntry) error
}

// journal writes down what one user does.
type journal struct {
	user           dmarcd.UserID
	actor, address string
	log            *slog.Logger
}

func (b *Backend) journalOf(viewer web.Viewer) journal {
	user, _ := dmarcd.ParseUserID(viewer.ID) // 0 for nobody
	return journal{user: user, actor: viewer.Email, address: viewer.Address, log: b.options.Log}
}

// write adds an entry about a change that was made. Where that fails the change
// stands all the same: the entry goes to the log of the program.
func (j journal) write(ctx context.Context, to book, action, target, detail string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	err := to.Note(ctx, dmarcd.AuditEntry{
		User: j.user, Actor: j.actor, Action: action, Target: target, Detail: detail, Address: j.address,
	})
	if err != nil {
		j.log.ErrorContext(ctx, "audit entry not written", "error", err, "user", j.user.String(), "action", action, "target", target)
	}
}
