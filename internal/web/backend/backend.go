// Package backend answers what the pages of package web ask, from the store and
// the services. It turns what they know into what pages show, and writes into the
// audit log what is changed through a page. What a role allows is decided by
// package web, and which team a value is for by whoever signs in.
package backend

import (
	"log/slog"
	"sync"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/web"
)

// Options are what a Backend is made of.
type Options struct {
	Store     *store.Store
	Service   *service.Service
	Sessions  *auth.Sessions
	Passwords *auth.PasswordSignIn
	Welcome   *auth.Welcome
	// Memory is what large answers are made within.
	Memory *memory.Budget
	// Acceptor reads what is uploaded. It must take MaxUpload bytes.
	Acceptor  *intake.Acceptor
	MaxUpload int64
	// BaseURL is where clients see the API; the pages are at the same host.
	BaseURL string
	// ReportDomain is the domain of the reporting addresses, "" if there is none.
	ReportDomain string
	Now          func() time.Time
	Log          *slog.Logger
}

// Backend answers the pages. It is safe for concurrent use.
type Backend struct {
	options Options
	mu      sync.Mutex
	// looking holds the domains whose DNS is being looked at for somebody who
	// waits.
	looking map[watched]struct{}
}

// New returns a backend.
func New(options Options) *Backend {
	return &Backend{options: options, looking: map[watched]struct{}{}}
}

// Team returns what the viewer may ask about the team that they chose. The value is
// for one request.
func (b *Backend) Team(viewer web.Viewer) web.Team {
	// A viewer in no team has no id, and finds nothing in the team 0.
	id, _ := dmarcd.ParseTeamID(viewer.Team.ID)
	d := desk{Backend: b, journal: b.journalOf(viewer), id: id}
	d.team = b.options.Service.Team(id, service.User(d.user, d.actor, dmarcd.Role(viewer.Role), viewer.Operator, d.address))
	mail := &sources{desk: d}
	return web.Team{
		Domains:   domains{d},
		Checks:    checks{d},
		Sources:   mail,
		Memory:    mail,
		Reports:   reports{d},
		Rejected:  rejected{d},
		Verdicts:  verdicts{d},
		Tokens:    tokens{d},
		Members:   members{d},
		Invites:   invites{d},
		Mailboxes: mailboxes{d},
		Keeping:   housekeeping{d},
	}
}

// desk is where the changes of one viewer to one team are made.
type desk struct {
	*Backend
	journal
	id dmarcd.TeamID
	// team is what the viewer may do in it.
	team *service.Team
}
