package backend_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

// newID stands for an id that is drawn.
const newID = "*"

// TestChangesAreWrittenDown makes every change that a page can make to a team, and
// wants it in the audit log with who made it and from where.
func TestChangesAreWrittenDown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		s.fill(t, team)
		v := victimOf(t, team, viewer)
		acme, err := s.store.TeamByName(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		member := s.viewer(t, s.join(t, "", dmarcd.Invite{Email: "bob@example.com", Team: acme.ID, Role: dmarcd.RoleViewer}))
		page := s.Team(viewer)
		ctx := t.Context()
		for _, change := range []struct {
			action, target string
			make           func() error
		}{
			{"report.exclude", v.report, func() error { return page.Verdicts.SetCounted(ctx, v.report, false) }},
			{"report.include", "receiver.example", func() error {
				changed, err := page.Verdicts.SetCountedAll(ctx, usecase.Selection{Reporter: "receiver.example"}, true)
				if err == nil && changed != 1 {
					t.Errorf("got %d reports included, want 1", changed)
				}
				return err
			}},
			{"report.delete", v.report, func() error { return page.Verdicts.DeleteReport(ctx, v.report) }},
			{"rejected.delete", v.rejected, func() error { return page.Verdicts.DeleteRejected(ctx, v.rejected) }},
			{"domain.add", "example.org", func() error {
				_, err := page.Domains.AddDomain(ctx, "Example.ORG.")
				return err
			}},
			{"domain.purpose", sampleDomain, func() error { return page.Domains.SetPurpose(ctx, sampleDomain, dmarcd.PurposeBusiness) }},
			{"domain.delete", sampleDomain, func() error { return page.Domains.DeleteDomain(ctx, sampleDomain) }},
			{"report.upload", "report\ufffd\ufffd.xml", func() error {
				// A browser may send any name; the database takes text.
				_, err := page.Reports.Upload(ctx, "report\x00\xff.xml", sampleReport(t))
				return err
			}},
			{"token.create", newID, func() error {
				_, err := page.Tokens.CreateToken(ctx, web.NewToken{Name: "script", Scope: dmarcd.ScopeRead})
				return err
			}},
			{"mailbox.add", newID, func() error { return page.Mailboxes.AddMailbox(ctx, sampleMailbox()) }},
			{"token.revoke", v.token, func() error { return page.Tokens.RevokeToken(ctx, v.token) }},
			{"member.invite", "new@example.com", func() error {
				_, err := page.Invites.InviteMember(ctx, "New@example.com", "viewer")
				return err
			}},
			{"member.uninvite", "new@example.com", func() error { return page.Invites.WithdrawInvite(ctx, "new@example.com") }},
			{"member.role", "bob@example.com", func() error { return page.Members.SetRole(ctx, member.ID, "editor") }},
			{"member.remove", "bob@example.com", func() error { return page.Members.RemoveMember(ctx, member.ID) }},
			{"mailbox.remove", v.mailbox, func() error { return page.Mailboxes.RemoveMailbox(ctx, v.mailbox) }},
			{"retention.set", "", func() error { return page.Keeping.SetRetention(ctx, web.Retention{Counters: 30, Records: 30}) }},
		} {
			if err := change.make(); err != nil {
				t.Errorf("%s: %v", change.action, err)
				continue
			}
			entries, err := team.Audit(ctx, store.AuditFilter{Action: change.action}, store.Cursor{}, 10)
			if err != nil || len(entries) != 1 {
				t.Errorf("%s: got %d entries and %v, want 1", change.action, len(entries), err)
				continue
			}
			got := entries[0]
			if got.Target != change.target && (change.target != newID || got.Target == "") || got.Actor != "ann@example.com" || got.User.String() != viewer.ID || got.Address != "192.0.2.7" {
				t.Errorf("%s: got %+v, want %s by the owner", change.action, got, change.target)
			}
		}
	})
}

// TestRefusedChangesLeaveNoTrace wants no entry for what was not done.
func TestRefusedChangesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	team, viewer := s.owner(t, "acme", "ann@example.com")
	page := s.Team(viewer)
	ctx := t.Context()
	before, err := team.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		make func() error
		want error
	}{
		{"no domain name", func() error {
			_, err := page.Domains.AddDomain(ctx, "no name")
			return err
		}, dmarcd.ErrInvalid},
		{"no such domain", func() error { return page.Domains.DeleteDomain(ctx, "example.net") }, dmarcd.ErrNotFound},
		{"no such token", func() error { return page.Tokens.RevokeToken(ctx, "tok_1") }, dmarcd.ErrNotFound},
		{"no token at all", func() error { return page.Tokens.RevokeToken(ctx, "'") }, dmarcd.ErrNotFound},
		{"nobody invited", func() error { return page.Invites.WithdrawInvite(ctx, "new@example.com") }, dmarcd.ErrNotFound},
		{"the last owner", func() error { return page.Members.RemoveMember(ctx, viewer.ID) }, dmarcd.ErrInvalid},
		{"no role", func() error { return page.Members.SetRole(ctx, viewer.ID, "emperor") }, dmarcd.ErrInvalid},
		{"no such rejected report", func() error {
			_, err := page.Rejected.Retry(ctx, "rej_1")
			return err
		}, dmarcd.ErrNotFound},
		{"no such report", func() error { return page.Verdicts.SetCounted(ctx, "rep_1", false) }, dmarcd.ErrNotFound},
		{"no report at all", func() error { return page.Verdicts.DeleteReport(ctx, "'") }, dmarcd.ErrNotFound},
		{"no reports selected", func() error {
			_, err := page.Verdicts.SetCountedAll(ctx, usecase.Selection{}, false)
			return err
		}, dmarcd.ErrInvalid},
		{"sums that go before the records", func() error {
			return page.Keeping.SetRetention(ctx, web.Retention{Counters: 10, Records: 30})
		}, dmarcd.ErrInvalid},
		{"sums that go before records that stay", func() error {
			return page.Keeping.SetRetention(ctx, web.Retention{Counters: 10})
		}, dmarcd.ErrInvalid},
	} {
		if err := row.make(); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	after, err := team.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("got other entries (%v) (-before +after):\n%s", err, diff)
	}
}

// TestInstallation makes the changes of an operator.
func TestInstallation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, owner := s.owner(t, "acme", "ann@example.com")
		s.fill(t, team)
		operator := s.viewer(t, s.join(t, "", dmarcd.Invite{Email: "op@example.com", Operator: true}))
		page := s.Installation(operator)
		if err := page.CreateTeam(t.Context(), "zoo", true); err != nil {
			t.Fatal(err)
		}
		teams, err := page.Teams(t.Context())
		if err != nil || len(teams) != 2 {
			t.Fatalf("got %+v and %v, want two teams", teams, err)
		}
		if got := teams[0]; got.Name != "acme" || got.API || got.Domains != 1 || got.Members != 1 || got.Messages != 10 {
			t.Errorf("got %+v, want acme with its sizes", got)
		}
		if err := page.SetAPI(t.Context(), teams[1].ID, false); err != nil {
			t.Fatal(err)
		}
		if teams, err = page.Teams(t.Context()); err != nil || teams[1].API {
			t.Errorf("got %+v and %v, want zoo off the whitelist", teams[1], err)
		}
		if err := page.SetAPI(t.Context(), "team_1", true); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("no such team: got %v, want dmarcd.ErrNotFound", err)
		}
		users, err := page.Users(t.Context())
		if err != nil || len(users) != 2 || len(users[0].Teams) != 1 || users[0].Teams[0] != (web.Fact{Name: "acme", Value: "owner"}) {
			t.Errorf("got %+v and %v, want the owner of acme and the operator", users, err)
		}
		if err := page.RemoveUser(t.Context(), operator.ID); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("themselves: got %v, want dmarcd.ErrInvalid", err)
		}
		if err := page.RemoveUser(t.Context(), owner.ID); err != nil {
			t.Fatal(err)
		}
		entries, err := s.store.Audit(t.Context(), store.AuditFilter{Actor: "op@example.com"}, store.Cursor{}, 10)
		var actions []string
		for _, e := range entries {
			actions = append(actions, e.Action+" "+e.Target+" "+e.Detail)
		}
		want := "user.remove ann@example.com left without an owner: acme, team.deny zoo , team.create zoo , user.join op@example.com "
		if got := strings.Join(actions, ", "); err != nil || got != want {
			t.Errorf("got the entries %q and %v, want %q", got, err, want)
		}
		log, err := page.Audit(t.Context(), "")
		of := make(map[string]string)
		for _, e := range log.Items {
			of[e.Action] = e.Team
		}
		if err != nil || log.Items[0].Action != "user.remove" || of["user.remove"] != "" || of["member.join"] != "acme" {
			t.Errorf("got the log %+v and %v, want that of the installation and of acme", log.Items, err)
		}
	})
}
