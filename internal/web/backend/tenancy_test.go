package backend_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/dmarcd/dmarcd"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

// victim is what another team tries to reach.
type victim struct {
	report, rejected, token, mailbox, user, invited string
}

// attack is a call with the victim's names and ids, and what comes back: how many
// things, and the error.
type attack func(t *testing.T, other web.Team, v victim) (found int, err error)

// attacks holds one for every method that a page can call. A method that is missing
// here fails the test. The names of those that answer with dmarcd.ErrNotFound have
// "!" behind them; the others find nothing.
func attacks(s *service) map[string]attack {
	query := web.SourceQuery{Domain: sampleDomain, Period: s.week(), Group: web.GroupNetwork, Key: "-", Limit: 10}
	all := query
	all.Domain = ""
	return map[string]attack{
		"Domains.Overview": func(t *testing.T, other web.Team, _ victim) (int, error) {
			o, err := other.Domains.Overview(t.Context(), web.OverviewQuery{Period: s.week(), Limit: 10})
			return o.All + o.Matching + len(o.Domains) + len(o.News) + len(o.Tasks) + int(o.Counts.Total()+o.Before.Total()), err
		},
		"Domains.Domain!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Domains.Domain(t.Context(), sampleDomain)
			return 0, err
		},
		"Domains.AddDomain": func(t *testing.T, other web.Team, _ victim) (int, error) {
			if _, err := other.Domains.AddDomain(t.Context(), sampleDomain); err != nil {
				return 0, err
			}
			sources, err := other.Sources.Sources(t.Context(), query)
			if err != nil {
				return 0, err
			}
			return len(sources.Sources), other.Domains.DeleteDomain(t.Context(), sampleDomain)
		},
		"Domains.DeleteDomain!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return 0, other.Domains.DeleteDomain(t.Context(), sampleDomain)
		},
		"Domains.SetPurpose!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return 0, other.Domains.SetPurpose(t.Context(), sampleDomain, dmarcd.PurposePersonal)
		},
		"Checks.LatestCheck!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Checks.LatestCheck(t.Context(), sampleDomain)
			return 0, err
		},
		"Checks.Checks!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Checks.Checks(t.Context(), sampleDomain, "")
			return 0, err
		},
		"Checks.Setup!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Checks.Setup(t.Context(), sampleDomain)
			return 0, err
		},
		"Checks.Verify!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return 0, other.Checks.Verify(t.Context(), sampleDomain)
		},
		"Checks.Watch!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return 0, other.Checks.Watch(t.Context(), sampleDomain)
		},
		"Sources.Timeline!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Sources.Timeline(t.Context(), sampleDomain, s.week())
			return 0, err
		},
		"Sources.Sources": func(t *testing.T, other web.Team, _ victim) (int, error) {
			if _, err := other.Sources.Sources(t.Context(), query); !errors.Is(err, dmarcd.ErrNotFound) {
				return 0, fmt.Errorf("the victim's domain: %w", err)
			}
			list, err := other.Sources.Sources(t.Context(), all)
			return len(list.Sources) + int(list.Counts.Total()), err
		},
		"Sources.Source!": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Sources.Source(t.Context(), all)
			return 0, err
		},
		"Sources.Flows": func(t *testing.T, other web.Team, _ victim) (int, error) {
			flows, err := other.Sources.Flows(t.Context(), all)
			return len(flows), err
		},
		"Memory.Reserve": func(t *testing.T, other web.Team, _ victim) (int, error) {
			_, err := other.Memory.Reserve(t.Context())
			return 0, err
		},
		"Memory.Release": func(_ *testing.T, other web.Team, _ victim) (int, error) {
			other.Memory.Release()
			return 0, nil
		},
		"Sources.Records": func(t *testing.T, other web.Team, _ victim) (int, error) {
			page, err := other.Sources.Records(t.Context(), all)
			return len(page.Items), err
		},
		"Reports.Reports": func(t *testing.T, other web.Team, _ victim) (int, error) {
			page, err := other.Reports.Reports(t.Context(), web.ReportQuery{Limit: 10})
			return len(page.Items), err
		},
		"Reports.Report!": func(t *testing.T, other web.Team, v victim) (int, error) {
			_, err := other.Reports.Report(t.Context(), v.report, "", 10)
			return 0, err
		},
		"Reports.Original!": func(t *testing.T, other web.Team, v victim) (int, error) {
			_, err := other.Reports.Original(t.Context(), v.report)
			return 0, err
		},
		"Reports.Upload": func(t *testing.T, other web.Team, _ victim) (int, error) {
			receipts, err := other.Reports.Upload(t.Context(), "report.xml", sampleReport(t))
			if err == nil && receipts[0].Status != dmarcd.Unclaimed {
				err = fmt.Errorf("got %s, want unclaimed", receipts[0].Status)
			}
			return 0, err
		},
		"Rejected.Rejected": func(t *testing.T, other web.Team, _ victim) (int, error) {
			page, err := other.Rejected.Rejected(t.Context(), "")
			return len(page.Items), err
		},
		"Rejected.RejectedOriginal!": func(t *testing.T, other web.Team, v victim) (int, error) {
			_, err := other.Rejected.RejectedOriginal(t.Context(), v.rejected)
			return 0, err
		},
		"Rejected.Retry!": func(t *testing.T, other web.Team, v victim) (int, error) {
			_, err := other.Rejected.Retry(t.Context(), v.rejected)
			return 0, err
		},
		"Verdicts.SetCounted!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Verdicts.SetCounted(t.Context(), v.report, false)
		},
		"Verdicts.SetCountedAll": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return other.Verdicts.SetCountedAll(t.Context(), usecase.Selection{Reporter: "receiver.example"}, false)
		},
		"Verdicts.DeleteReport!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Verdicts.DeleteReport(t.Context(), v.report)
		},
		"Verdicts.DeleteRejected!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Verdicts.DeleteRejected(t.Context(), v.rejected)
		},
		"Tokens.Tokens": func(t *testing.T, other web.Team, _ victim) (int, error) {
			tokens, err := other.Tokens.Tokens(t.Context())
			return len(tokens), err
		},
		"Tokens.CreateToken": func(t *testing.T, other web.Team, _ victim) (int, error) {
			if _, err := other.Tokens.CreateToken(t.Context(), web.NewToken{Name: "mine", Scope: dmarcd.ScopeRead}); err != nil {
				return 0, err
			}
			tokens, err := other.Tokens.Tokens(t.Context())
			return len(tokens) - 1, err
		},
		"Tokens.RevokeToken!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Tokens.RevokeToken(t.Context(), v.token)
		},
		"Members.Members": func(t *testing.T, other web.Team, _ victim) (int, error) {
			members, err := other.Members.Members(t.Context())
			return len(members) - 1, err // themselves
		},
		"Invites.Invites": func(t *testing.T, other web.Team, _ victim) (int, error) {
			open, err := other.Invites.Invites(t.Context())
			return len(open), err
		},
		"Invites.InviteMember": func(t *testing.T, other web.Team, v victim) (int, error) {
			if _, err := other.Invites.InviteMember(t.Context(), v.invited, "viewer"); err != nil {
				return 0, err
			}
			open, err := other.Invites.Invites(t.Context())
			return len(open) - 1, err
		},
		"Invites.WithdrawInvite!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Invites.WithdrawInvite(t.Context(), v.invited)
		},
		"Members.SetRole!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Members.SetRole(t.Context(), v.user, "viewer")
		},
		"Members.RemoveMember!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Members.RemoveMember(t.Context(), v.user)
		},
		"Mailboxes.Mailboxes": func(t *testing.T, other web.Team, _ victim) (int, error) {
			mailboxes, err := other.Mailboxes.Mailboxes(t.Context())
			return len(mailboxes), err
		},
		"Mailboxes.AddMailbox": func(t *testing.T, other web.Team, _ victim) (int, error) {
			if err := other.Mailboxes.AddMailbox(t.Context(), sampleMailbox()); err != nil {
				return 0, err
			}
			mailboxes, err := other.Mailboxes.Mailboxes(t.Context())
			return len(mailboxes) - 1, err
		},
		"Mailboxes.RemoveMailbox!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Mailboxes.RemoveMailbox(t.Context(), v.mailbox)
		},
		"Mailboxes.ResumeMailbox!": func(t *testing.T, other web.Team, v victim) (int, error) {
			return 0, other.Mailboxes.ResumeMailbox(t.Context(), v.mailbox)
		},
		"Keeping.Retention": func(t *testing.T, other web.Team, _ victim) (int, error) {
			keep, err := other.Keeping.Retention(t.Context())
			return keep.Counters, err // the victim's is 400 days, the installation's for ever
		},
		"Keeping.SetRetention": func(t *testing.T, other web.Team, _ victim) (int, error) {
			return 0, other.Keeping.SetRetention(t.Context(), web.Retention{Records: 1})
		},
		"Keeping.Audit": func(t *testing.T, other web.Team, _ victim) (int, error) {
			page, err := other.Keeping.Audit(t.Context(), "")
			foreign := 0
			for _, entry := range page.Items {
				if entry.Actor != "other@example.com" {
					foreign++
				}
			}
			return foreign, err
		},
	}
}

// TestTenancy calls every method that a page can call as the owner of one team with
// the names and ids of another.
func TestTenancy(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "victim", "victim@example.com")
		s.fill(t, team)
		if err := s.Team(viewer).Keeping.SetRetention(t.Context(), web.Retention{Counters: 400, Records: 300}); err != nil {
			t.Fatal(err)
		}
		v := victimOf(t, team, viewer)
		var session string
		rows := attacks(s)
		for _, method := range methodsOf(web.Team{}) {
			attack, silent := rows[method]
			if !silent {
				attack = rows[method+"!"]
			}
			if attack == nil {
				t.Errorf("%s: no attack in the table", method)
				continue
			}
			// Each comes from a team of its own, so that none finds what
			// another one made.
			session = s.join(t, session, dmarcd.Invite{
				Email: "other@example.com", Team: s.newTeam(t, method).ID, Role: dmarcd.RoleOwner,
			})
			found, err := attack(t, s.Team(s.viewer(t, session)), v)
			switch {
			case silent && (err != nil || found != 0):
				t.Errorf("%s: got %d things and %v, want nothing", method, found, err)
			case !silent && !errors.Is(err, dmarcd.ErrNotFound):
				t.Errorf("%s: got %v, want dmarcd.ErrNotFound", method, err)
			}
		}
		if got := victimOf(t, team, viewer); got != v {
			t.Errorf("got %+v after the attacks, want %+v", got, v)
		}
	})
}

// methodsOf returns the methods of all interfaces of a team.
func methodsOf(team web.Team) []string {
	var methods []string
	fields := reflect.TypeOf(team)
	for i := range fields.NumField() {
		for j := range fields.Field(i).Type.NumMethod() {
			methods = append(methods, fields.Field(i).Name+"."+fields.Field(i).Type.Method(j).Name)
		}
	}
	return methods
}

// victimOf reads what there is to reach.
func victimOf(t *testing.T, team *store.Team, viewer web.Viewer) victim {
	t.Helper()
	reports, errReports := team.Reports(t.Context(), store.ReportFilter{Domain: sampleDomain}, 0, 10)
	rejected, errRejected := team.Rejected(t.Context(), 0, 10)
	tokens, errTokens := team.Tokens(t.Context())
	mailboxes, errMailboxes := team.Mailboxes(t.Context())
	invites, errInvites := team.Invites(t.Context())
	if err := errors.Join(errReports, errRejected, errTokens, errMailboxes, errInvites); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || len(rejected) != 1 || len(tokens) != 1 || len(mailboxes) != 1 || len(invites) != 1 || !tokens[0].RevokedAt.IsZero() {
		t.Fatalf("got %d reports, %d rejected, tokens %v, %d mailboxes and %d invites, want one of each",
			len(reports), len(rejected), tokens, len(mailboxes), len(invites))
	}
	return victim{
		report: reports[0].ID.String(), rejected: rejected[0].ID.String(), token: tokens[0].ID.String(),
		mailbox: mailboxes[0].ID.String(), user: viewer.ID, invited: invites[0].Email,
	}
}

func sampleMailbox() web.NewMailbox {
	return web.NewMailbox{
		Server: "imap.example.org:1993", Security: "tls", Username: "reports", Password: "open sesame", Folder: "INBOX", After: "flag",
	}
}
