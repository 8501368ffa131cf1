package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/demo"
	"github.com/dmarcd/dmarcd/internal/store"
)

// office brings what the people of a story do into a database.
type office struct {
	store        *store.Store
	reportDomain string
	clock        *time.Time
	teams        map[string]dmarcd.Team
	users        map[string]dmarcd.User
	tokens       map[string]dmarcd.TokenID
	// teamOf and addresses tell of the domains whose they are, and where reports
	// about them go.
	teamOf    map[string]*store.Team
	addresses map[string]string
	// password is the hash of one that nobody knows: people come in by a link.
	password string
}

// newOffice makes the teams. The addresses of domains are added to those given.
func newOffice(ctx context.Context, s *store.Store, reportDomain string, addresses map[string]string, clock *time.Time) (*office, error) {
	o := &office{
		store: s, reportDomain: reportDomain, clock: clock, teams: map[string]dmarcd.Team{}, users: map[string]dmarcd.User{},
		tokens: map[string]dmarcd.TokenID{}, teamOf: map[string]*store.Team{}, addresses: addresses,
	}
	for name, api := range map[string]bool{demo.FirstTeam: true, demo.SecondTeam: false} {
		team, err := s.CreateTeam(ctx, name, api)
		if err != nil {
			return nil, err
		}
		o.teams[name] = team
	}
	var err error
	o.password, err = auth.NewPasswords().Hash(ctx, "", rand.Text())
	return o, err
}

// do does a deed at its time, and writes it into the audit log of its team.
func (o *office) do(ctx context.Context, deed demo.Deed) error {
	*o.clock = deed.At
	entry := dmarcd.AuditEntry{
		Actor: deed.By, Action: string(deed.Action), Target: deed.Target, Detail: deed.Detail, Address: deed.Address,
	}
	team := o.store.Team(o.teams[deed.Team].ID)
	var err error
	switch deed.Action {
	case demo.Joined:
		err = o.join(ctx, deed)
	case demo.Invited:
		err = o.invite(ctx, team, deed)
	case demo.AddedDomain:
		err = o.addDomain(ctx, team, deed.Target)
	case demo.SetPurpose:
		err = team.SetPurpose(ctx, deed.Target, dmarcd.Purpose(deed.Detail))
	case demo.CreatedToken:
		entry.Target, err = o.createToken(ctx, team, deed)
		entry.Detail = deed.Target + ", " + deed.Detail
	case demo.RevokedToken:
		entry.Target = o.tokens[deed.Target].String()
		err = team.RevokeToken(ctx, o.tokens[deed.Target])
	case demo.AddedMailbox:
		entry.Target, err = addUnreadMailbox(ctx, team, deed)
		entry.Detail = deed.Target + " at " + deed.Detail
	case demo.UploadedReport: // the story brings it
	}
	if err != nil {
		return err
	}
	entry.User = o.users[deed.By].ID
	return team.Note(ctx, entry)
}

// join lets somebody into a team as if by a link, and signs them in.
func (o *office) join(ctx context.Context, deed demo.Deed) error {
	_, hash := auth.NewInvite()
	err := o.store.CreateInvite(ctx, hash, dmarcd.Invite{
		Email: deed.By, Team: o.teams[deed.Team].ID, Role: dmarcd.Role(deed.Detail), ExpiresAt: deed.At.Add(time.Hour),
	})
	if err != nil {
		return err
	}
	claim := dmarcd.Claim{User: o.users[deed.By].ID, Name: demo.NameOf(deed.By)}
	if claim.User == 0 {
		claim.PasswordHash = o.password
	}
	user, err := o.store.UseInvite(ctx, hash, claim)
	if err != nil {
		return err
	}
	o.users[deed.By] = user
	_, session := auth.NewInvite() // whose secret nobody has
	return o.store.CreateSession(ctx, dmarcd.NewSession{
		Hash: session, User: user.ID, ExpiresAt: deed.At.Add(dmarcd.SessionLife), Address: deed.Address,
	})
}

func (o *office) invite(ctx context.Context, team *store.Team, deed demo.Deed) error {
	_, hash := auth.NewInvite()
	return team.Invite(ctx, hash, dmarcd.Invite{
		Email: deed.Target, Role: dmarcd.Role(deed.Detail), CreatedBy: o.users[deed.By].ID, ExpiresAt: deed.At.Add(dmarcd.InviteLife),
	})
}

func (o *office) addDomain(ctx context.Context, team *store.Team, name string) error {
	added, err := team.AddDomain(ctx, name, *o.clock)
	o.teamOf[name], o.addresses[name] = team, added.ReportAddress(o.reportDomain)
	return err
}

func (o *office) createToken(ctx context.Context, team *store.Team, deed demo.Deed) (id string, err error) {
	made, err := team.CreateToken(ctx, store.NewToken{
		Name: deed.Target, Scope: dmarcd.Scope(deed.Detail), Hash: auth.HashToken(auth.NewToken()),
	})
	o.tokens[deed.Target] = made.ID
	return made.ID.String(), err
}

// addUnreadMailbox declares a mailbox. Nobody reads it: see office.close.
func addUnreadMailbox(ctx context.Context, team *store.Team, deed demo.Deed) (id string, err error) {
	added, err := team.AddMailbox(ctx, dmarcd.Mailbox{
		Host: deed.Detail, Port: dmarcd.SecurityTLS.Port(), Security: dmarcd.SecurityTLS, Username: deed.Target,
		Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterFlag,
	}, func(dmarcd.Mailbox) ([]byte, error) { return []byte("no secret"), nil })
	return added.ID.String(), err
}

// forEver is longer than any demo runs.
const forEver = 100 * 365 * 24 * time.Hour

// close holds the mailboxes for ever, so that no reader of the daemon gets a lease on
// them and connects to anybody, and returns the link by which the owner of the teams
// signs in, as an operator.
func (o *office) close(ctx context.Context) (Invite, error) {
	const many = 100
	held, err := o.store.ClaimMailboxes(ctx, forEver, many)
	if err != nil {
		return Invite{}, err
	}
	for _, m := range held {
		if err := o.store.Team(m.Team).SaveMailboxStatus(ctx, m.ID, ""); err != nil {
			return Invite{}, fmt.Errorf("save a mailbox status: %w", err)
		}
	}
	secret, hash := auth.NewInvite()
	err = o.store.CreateInvite(ctx, hash, dmarcd.Invite{
		Email: demo.Ada, Operator: true, ExpiresAt: o.clock.Add(dmarcd.InviteLife),
	})
	return Invite{Secret: secret, For: demo.NameOf(demo.Ada) + ", who owns two teams and operates the installation"}, err
}
