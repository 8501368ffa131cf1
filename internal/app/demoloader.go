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

// loader applies the actions of users of a scenario to a database.
type loader struct {
	store        *store.Store
	reportDomain string
	clock        *time.Time
	teams        map[string]dmarcd.Team
	users        map[string]dmarcd.User
	tokens       map[string]dmarcd.TokenID
	// teamOf maps domains to their teams, addresses to their reporting addresses.
	teamOf    map[string]*store.Team
	addresses map[string]string
	// password is the hash of a random password: users sign in with a link.
	password string
}

// newLoader creates the teams. It adds the reporting addresses to addresses.
func newLoader(ctx context.Context, s *store.Store, reportDomain string, addresses map[string]string, clock *time.Time) (*loader, error) {
	o := &loader{
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

// do applies a step at its time, and writes it to the audit log of its team.
func (o *loader) do(ctx context.Context, step demo.Step) error {
	*o.clock = step.At
	entry := dmarcd.AuditEntry{
		Actor: step.By, Action: string(step.Action), Target: step.Target, Detail: step.Detail, Address: step.Address,
	}
	team := o.store.Team(o.teams[step.Team].ID)
	var err error
	switch step.Action {
	case demo.Joined:
		err = o.join(ctx, step)
	case demo.Invited:
		err = o.invite(ctx, team, step)
	case demo.AddedDomain:
		err = o.addDomain(ctx, team, step.Target)
	case demo.SetPurpose:
		err = team.SetPurpose(ctx, step.Target, dmarcd.Purpose(step.Detail))
	case demo.SetParked:
		err = team.SetParked(ctx, step.Target, true)
	case demo.CreatedToken:
		entry.Target, err = o.createToken(ctx, team, step)
		entry.Detail = step.Target + ", " + step.Detail
	case demo.RevokedToken:
		entry.Target = o.tokens[step.Target].String()
		err = team.RevokeToken(ctx, o.tokens[step.Target])
	case demo.AddedMailbox:
		entry.Target, err = addUnreadMailbox(ctx, team, step)
		entry.Detail = step.Target + " at " + step.Detail
	case demo.UploadedReport: // the scenario contains it
	}
	if err != nil {
		return err
	}
	entry.User = o.users[step.By].ID
	return team.Note(ctx, entry)
}

// join adds a user to a team as if by an invitation, and signs them in.
func (o *loader) join(ctx context.Context, step demo.Step) error {
	_, hash := auth.NewInvitation()
	err := o.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: step.By, Team: o.teams[step.Team].ID, Role: dmarcd.Role(step.Detail), ExpiresAt: step.At.Add(time.Hour),
	})
	if err != nil {
		return err
	}
	claim := dmarcd.Claim{User: o.users[step.By].ID, Name: demo.NameOf(step.By)}
	if claim.User == 0 {
		claim.PasswordHash = o.password
	}
	user, err := o.store.UseInvitation(ctx, hash, claim)
	if err != nil {
		return err
	}
	o.users[step.By] = user.User
	_, session := auth.NewInvitation() // with an unknown secret
	return o.store.CreateSession(ctx, dmarcd.NewSession{
		Hash: session, User: user.ID, PasswordHash: user.PasswordHash, ExpiresAt: step.At.Add(dmarcd.SessionLife), Address: step.Address,
	})
}

func (o *loader) invite(ctx context.Context, team *store.Team, step demo.Step) error {
	_, hash := auth.NewInvitation()
	return team.Invite(ctx, hash, dmarcd.Invitation{
		Email: step.Target, Role: dmarcd.Role(step.Detail), CreatedBy: o.users[step.By].ID, ExpiresAt: step.At.Add(dmarcd.InvitationLife),
	})
}

func (o *loader) addDomain(ctx context.Context, team *store.Team, name string) error {
	added, err := team.AddDomain(ctx, name, *o.clock)
	o.teamOf[name], o.addresses[name] = team, added.ReportAddress(o.reportDomain)
	return err
}

func (o *loader) createToken(ctx context.Context, team *store.Team, step demo.Step) (id string, err error) {
	made, err := team.CreateToken(ctx, store.NewToken{
		Name: step.Target, Scope: dmarcd.Scope(step.Detail), Hash: auth.HashToken(auth.NewToken()),
	})
	o.tokens[step.Target] = made.ID
	return made.ID.String(), err
}

// addUnreadMailbox adds a mailbox that is never read: see loader.close.
func addUnreadMailbox(ctx context.Context, team *store.Team, step demo.Step) (id string, err error) {
	added, err := team.AddMailbox(ctx, dmarcd.Mailbox{
		Host: step.Detail, Port: dmarcd.SecurityTLS.Port(), Security: dmarcd.SecurityTLS, Username: step.Target,
		Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterFlag,
	}, func(dmarcd.Mailbox) ([]byte, error) { return []byte("no secret"), nil })
	return added.ID.String(), err
}

// forEver is longer than any demo runs.
const forEver = 100 * 365 * 24 * time.Hour

// close leases the mailboxes for ever, so that the daemon never connects to them, and returns
// the sign-in link of the owner, as an operator.
func (o *loader) close(ctx context.Context) (Invitation, error) {
	const many = 100
	held, err := o.store.ClaimMailboxes(ctx, forEver, many)
	if err != nil {
		return Invitation{}, err
	}
	for _, m := range held {
		if err := o.store.Team(m.Team).SaveMailboxStatus(ctx, m.ID, ""); err != nil {
			return Invitation{}, fmt.Errorf("save a mailbox status: %w", err)
		}
	}
	secret, hash := auth.NewInvitation()
	err = o.store.CreateInvitation(ctx, hash, dmarcd.Invitation{
		Email: demo.Ada, Operator: true, ExpiresAt: o.clock.Add(dmarcd.InvitationLife),
	})
	return Invitation{Secret: secret, For: demo.NameOf(demo.Ada) + ", who owns two teams and operates the installation"}, err
}
