package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// victim is the team that another team tries to access.
type victim struct {
	store           *store.Store
	domain          dmarcd.Domain
	token           dmarcd.Token
	report          dmarcd.ReportID
	rejected        dmarcd.RejectedID
	mailbox         dmarcd.Mailbox
	member          dmarcd.User
	test            dmarcd.ClaimedDelivery
	invited, sender string
	// testAddress is a local part.
	testAddress string
	// claimedUntil is the end of the claim of claimedKey.
	claimedUntil time.Time
}

func (v victim) delivery() *dmarcd.Delivery {
	name := v.domain.Name
	delivery := storetest.Delivery(storetest.Aggregate("1", name, 20000, storetest.Passed(name, 7), storetest.Failed(name, 3)))
	delivery.Rejections = []dmarcd.Rejection{{Member: "note.txt", Reason: "This is text, not a report."}}
	return delivery
}

// attacks calls every method of store.Team as another team, with the names and ids of the victim,
// and checks the result. A missing method fails the test.
var attacks = joined(joined(joined(joined(webhookAttacks, alertAttacks), labelAttacks), joined(joined(postureAttacks, recordAttacks), keyAttacks)), map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"Domain": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.Domain(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"ID":     func(context.Context, *store.Team, victim) error { return nil },
	"Delete": func(ctx context.Context, other *store.Team, _ victim) error { return other.Delete(ctx) },
	"JobTurn": func(ctx context.Context, team *store.Team, _ victim) error {
		team.JobTurn(ctx)() // reads nothing
		return nil
	},
	"ReadTurn": func(ctx context.Context, team *store.Team, _ victim) error {
		team.ReadTurn(ctx)() // reads nothing
		return nil
	},
	"CheckEnded": func(ctx context.Context, other *store.Team, v victim) error {
		return other.CheckEnded(ctx, v.domain.Name) // a dump of the victim's rows would show a change
	},
	"Domains": func(ctx context.Context, other *store.Team, _ victim) error {
		domains, err := other.Domains(ctx, "", 100)
		return wantNone(len(domains), err)
	},
	"AddDomain": func(ctx context.Context, other *store.Team, v victim) error {
		domain, err := other.AddDomain(ctx, v.domain.Name, time.Time{})
		if err != nil {
			return err
		}
		if domain.ID == v.domain.ID || domain.ReportMailbox == v.domain.ReportMailbox || domain.Record != "" {
			return errors.New("the same name shares something with the victim's domain")
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"AddDomains": func(ctx context.Context, other *store.Team, v victim) error {
		added, err := other.AddDomains(ctx, []string{v.domain.Name}, time.Time{})
		if err != nil || added != 1 {
			return errors.Join(err, errors.New("the victim's name was not free for another team"))
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"SetParked": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetParked(ctx, v.domain.Name, true))
	},
	"AcceptForwarding": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.AcceptForwarding(ctx, v.domain.Name, 1))
	},
	"SetPurpose": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetPurpose(ctx, v.domain.Name, dmarcd.PurposePersonal))
	},
	"SetSenderClasses": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetSenderClasses(ctx, v.domain.Name, map[string]dmarcd.Class{"sender": dmarcd.ClassSpoofing}))
	},
	"UrgentDomains": func(ctx context.Context, other *store.Team, _ victim) error {
		domains, err := other.UrgentDomains(ctx, dmarcd.Days{}, 0, 100)
		return wantNone(len(domains), err)
	},
	"AdviceStates": func(ctx context.Context, other *store.Team, v victim) error {
		states, err := other.AdviceStates(ctx, []dmarcd.DomainID{v.domain.ID}, dmarcd.Days{})
		return wantNone(len(states), err)
	},
	"SenderDomains": func(ctx context.Context, other *store.Team, v victim) error {
		read := 0
		domains, err := other.SenderDomains(ctx, func(dmarcd.CheckID) bool { return false }, func(dmarcd.CheckID, *facts.Facts) { read++ })
		found := slices.DeleteFunc(domains, func(d dmarcd.SenderDomain) bool { return d.ID != v.domain.ID && len(d.Classes) == 0 })
		return wantNone(len(found)+read, err)
	},
	"SenderClasses": func(ctx context.Context, other *store.Team, v victim) error {
		classes, err := other.SenderClasses(ctx, v.domain.Name)
		return wantNone(len(classes), err)
	},
	"DeleteDomain": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.DeleteDomain(ctx, v.domain.Name))
	},
	"SaveCheck": func(ctx context.Context, other *store.Team, v victim) error {
		check := facts.Check{At: time.Unix(2e9, 0), Conclusive: true, Record: "forged"}
		_, err := other.SaveCheck(ctx, v.domain.Name, check, dmarcd.Plan{})
		if err := wantNotFound(err); err != nil {
			return err
		}
		// A record that sends reports to the victim's address does not activate another
		// team's domain.
		if _, err := other.AddDomain(ctx, v.domain.Name, time.Time{}); err != nil {
			return err
		}
		check.Usable, check.NeedsMailbox, check.Mailboxes = true, true, []string{v.domain.ReportMailbox}
		domain, err := other.SaveCheck(ctx, v.domain.Name, check, dmarcd.Plan{})
		if err != nil || domain.Active {
			return errors.Join(err, errors.New("the victim's mailbox made another team's domain active"))
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"LatestCheck": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.LatestCheck(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"Checks": func(ctx context.Context, other *store.Team, v victim) error {
		checks, err := other.Checks(ctx, v.domain.Name, store.Times{}, store.Cursor{}, 100)
		return wantNone(len(checks), err)
	},
	"DomainChanges": func(ctx context.Context, other *store.Team, v victim) error {
		changes, err := other.DomainChanges(ctx, store.ChangeFilter{Domain: v.domain.Name}, store.Cursor{}, 100)
		return wantNone(len(changes), err)
	},
	"Events": func(ctx context.Context, other *store.Team, v victim) error {
		events, err := other.Events(ctx, store.EventFilter{}, store.Cursor{}, 100)
		if err := wantNone(len(events), err); err != nil {
			return err
		}
		events, err = other.Events(ctx, store.EventFilter{Domain: v.domain.Name}, store.Cursor{}, 100)
		return wantNone(len(events), err)
	},
	"EventsSince": func(ctx context.Context, other *store.Team, v victim) error {
		events, err := other.EventsSince(ctx, store.EventFilter{Domain: v.domain.Name}, 0, 100)
		return wantNone(len(events), err)
	},
	"LastEvent": func(ctx context.Context, other *store.Team, _ victim) error {
		seq, err := other.LastEvent(ctx)
		return wantNone(int(seq), err)
	},
	"EventAdded": func(_ context.Context, other *store.Team, _ victim) error {
		select {
		case <-other.EventAdded():
			return errors.New("the victim's event was announced")
		default:
			return nil
		}
	},
	"DomainSummary": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.DomainSummary(ctx, v.domain.Name, dmarcd.Days{})
		return wantNotFound(err)
	},
	"Summary": func(ctx context.Context, other *store.Team, _ victim) error {
		sum, err := other.Summary(ctx, dmarcd.Days{})
		return wantNone(int(sum.Total()), err)
	},
	"Daily": func(ctx context.Context, other *store.Team, _ victim) error {
		days, err := other.Daily(ctx, dmarcd.Days{}, 100)
		return wantNone(len(days), err)
	},
	"DomainDaily": func(ctx context.Context, other *store.Team, v victim) error {
		days, err := other.DomainDaily(ctx, v.domain.Name, dmarcd.Days{}, 100)
		return wantNone(len(days), err)
	},
	"DailyByDomain": func(ctx context.Context, other *store.Team, _ victim) error {
		days, err := other.DailyByDomain(ctx, dmarcd.Days{}, store.DailyCursor{}, 100)
		return wantNone(len(days), err)
	},
	"Receive": func(ctx context.Context, other *store.Team, v victim) error {
		// The same report as the victim's is not a duplicate, and has no domain.
		receipts, err := other.Receive(ctx, []*dmarcd.Delivery{v.delivery()})
		if err != nil {
			return err
		}
		if got := receipts[0][0]; got.Status != dmarcd.Unclaimed || got.ID == v.report {
			return fmt.Errorf("the victim's report came as %+v", got)
		}
		return nil
	},
	"Reports": func(ctx context.Context, other *store.Team, v victim) error {
		for _, filter := range []store.ReportFilter{{}, {Domain: v.domain.Name}, {Organization: "receiver.example"}} {
			reports, err := other.Reports(ctx, filter, 0, 100)
			if err := wantNone(len(reports), err); err != nil {
				return err
			}
		}
		return nil
	},
	"Report": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.Report(ctx, v.report)
		return wantNotFound(err)
	},
	"ReportsFrom": func(ctx context.Context, other *store.Team, v victim) error {
		for _, filter := range []store.ReportFilter{{}, {Domain: v.domain.Name}} {
			reports, err := other.ReportsFrom(ctx, filter, 0, time.Unix(1e10, 0), 100)
			if err := wantNone(len(reports), err); err != nil {
				return err
			}
		}
		return nil
	},
	"Records": func(ctx context.Context, other *store.Team, v victim) error {
		records, _, err := other.Records(ctx, v.report, store.RecordCursor{}, 100)
		return wantNone(len(records), err)
	},
	"Scan": func(ctx context.Context, other *store.Team, v victim) error {
		for _, name := range []string{"", v.domain.Name} {
			parts := 0
			err := other.Scan(ctx, name, dmarcd.Days{}, atOnce, func(rollup.Part) error {
				parts++
				return nil
			})
			if err := wantNone(parts, err); err != nil {
				return err
			}
		}
		return nil
	},
	"SentState": func(ctx context.Context, other *store.Team, v victim) error {
		for _, name := range []string{"", v.domain.Name} {
			state, err := other.SentState(ctx, name, dmarcd.Days{})
			if err := wantNone(int(state.Records+state.Days), err); err != nil {
				return err
			}
		}
		return nil
	},
	"Senders": func(ctx context.Context, other *store.Team, v victim) error {
		for _, name := range []string{"", v.domain.Name} {
			seen, err := other.Senders(ctx, name, []string{"-", "AS64496"})
			if err := wantNone(len(seen), err); err != nil {
				return err
			}
		}
		return nil
	},
	"SentRecords": func(ctx context.Context, other *store.Team, v victim) error {
		records, err := other.SentRecords(ctx, []dmarcd.SentPosition{{Report: v.report}, {Report: v.report, N: 1}})
		return wantNone(len(records), err)
	},
	"BusiestDomains": func(ctx context.Context, other *store.Team, _ victim) error {
		found, err := other.BusiestDomains(ctx, dmarcd.Days{}, 100)
		return wantNone(len(found), err)
	},
	"DomainTrends": func(ctx context.Context, other *store.Team, v victim) error {
		found, err := other.DomainTrends(ctx, []dmarcd.DomainID{v.domain.ID}, dmarcd.Days{})
		return wantNone(len(found), err)
	},
	"ReportOriginal": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.ReportOriginal(ctx, v.report)
		return wantNotFound(err)
	},
	"RejectedOriginal": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RejectedOriginal(ctx, v.rejected)
		return wantNotFound(err)
	},
	"Rejected": func(ctx context.Context, other *store.Team, _ victim) error {
		rejected, err := other.Rejected(ctx, 0, 100)
		return wantNone(len(rejected), err)
	},
	"RejectedByID": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.RejectedByID(ctx, v.rejected)
		return wantNotFound(err)
	},
	"SetReportCounted": func(ctx context.Context, other *store.Team, v victim) error {
		_, excluded := other.SetReportCounted(ctx, v.report, false, dmarcd.AuditEntry{Team: v.token.Team, Actor: "forged"})
		_, included := other.SetReportCounted(ctx, v.report, true, dmarcd.AuditEntry{Team: v.token.Team, Actor: "forged"})
		return errors.Join(wantNotFound(excluded), wantNotFound(included))
	},
	"SetReportsCounted": func(ctx context.Context, other *store.Team, v victim) error {
		changed, err := other.SetReportsCounted(ctx, store.ReportFilter{}, false, dmarcd.AuditEntry{Team: v.token.Team, Actor: "forged"})
		return wantNone(changed, err)
	},
	"DeleteReport": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.DeleteReport(ctx, v.report, dmarcd.AuditEntry{Team: v.token.Team, Actor: "forged"}))
	},
	"DeleteRejected": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.DeleteRejected(ctx, v.rejected, dmarcd.AuditEntry{Team: v.token.Team, Actor: "forged"}))
	},
	"SettleRejected": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SettleRejected(ctx, v.rejected))
	},
	"Selectors": func(ctx context.Context, other *store.Team, v victim) error {
		selectors, err := other.Selectors(ctx, v.domain.Name, 100)
		return wantNone(len(selectors), err)
	},
	"Retention": func(ctx context.Context, other *store.Team, _ victim) error {
		retained, err := other.Retention(ctx)
		if err == nil && retained.Records != store.AsConfigured {
			err = errors.New("another team has the victim's retention")
		}
		return err
	},
	"SetRetention": func(ctx context.Context, other *store.Team, _ victim) error {
		return other.SetRetention(ctx, store.Retention{Records: time.Hour})
	},
	"Quota": func(ctx context.Context, other *store.Team, _ victim) error {
		quota, err := other.Quota(ctx)
		if err == nil && quota[dmarcd.QuotaDomains] == victimsQuota {
			err = errors.New("another team has the victim's quota")
		}
		return err
	},
	"SetQuotas": func(ctx context.Context, other *store.Team, _ victim) error {
		return other.SetQuotas(ctx, dmarcd.Quota{dmarcd.QuotaStored: 1 << 40})
	},
	"Usage": func(ctx context.Context, other *store.Team, _ victim) error {
		usage, err := other.Usage(ctx)
		return wantNone(int(usage[dmarcd.QuotaMailboxes]), err)
	},
	"Admit": func(ctx context.Context, other *store.Team, _ victim) error { return other.Admit(ctx) },
	"AddMailbox": func(ctx context.Context, other *store.Team, v victim) error {
		m, err := other.AddMailbox(ctx, reportsMailbox(), sealFor)
		if err != nil {
			return err
		}
		if m.ID == v.mailbox.ID || m.Team == v.mailbox.Team {
			return errors.New("a mailbox of another team is the victim's")
		}
		return other.RemoveMailbox(ctx, m.ID)
	},
	"Mailboxes": func(ctx context.Context, other *store.Team, _ victim) error {
		all, err := other.Mailboxes(ctx)
		return wantNone(len(all), err)
	},
	"TestAddress": func(ctx context.Context, other *store.Team, _ victim) error {
		address, err := other.TestAddress(ctx, 1)
		return wantNone(len(address.Mails), err)
	},
	"AddTestMail": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.AddTestMail(ctx, v.testAddress, dmarcd.TestMail{ID: "forged"}))
	},
	"RemoveMailbox": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveMailbox(ctx, v.mailbox.ID))
	},
	"SaveMailboxState": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SaveMailboxState(ctx, v.mailbox.ID, 9, 9))
	},
	"SaveMailboxStatus": func(ctx context.Context, other *store.Team, v victim) error {
		return errors.Join(wantNotFound(other.SaveMailboxStatus(ctx, v.mailbox.ID, "forged")),
			wantNotFound(other.SaveMailboxStatus(ctx, v.mailbox.ID, "")))
	},
	"CountMailboxCrash": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.CountMailboxCrash(ctx, v.mailbox.ID)
		return wantNotFound(err)
	},
	"PauseMailbox": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.PauseMailbox(ctx, v.mailbox.ID, "forged"))
	},
	"ResumeMailbox": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.ResumeMailbox(ctx, v.mailbox.ID))
	},
	"SaveMailboxSecret": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SaveMailboxSecret(ctx, v.mailbox.ID, []byte("forged")))
	},
	"Members": func(ctx context.Context, other *store.Team, _ victim) error {
		members, err := other.Members(ctx)
		return wantNone(len(members), err)
	},
	"RequireSecondFactor": func(ctx context.Context, other *store.Team, _ victim) error {
		return other.RequireSecondFactor(ctx, true) // of its own team
	},
	"SetRole": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetRole(ctx, v.member.ID, dmarcd.RoleViewer))
	},
	"RemoveMember": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveMember(ctx, v.member.ID))
	},
	"Invite": func(ctx context.Context, other *store.Team, v victim) error {
		// The victim's team in the invitation is ignored.
		return other.Invite(ctx, sha256.Sum256([]byte("other's link")), dmarcd.Invitation{
			Email: "eve@example.com", Team: v.token.Team, Role: dmarcd.RoleOwner, CreatedBy: v.member.ID, ExpiresAt: time.Unix(1<<40, 0),
		})
	},
	"Invitations": func(ctx context.Context, other *store.Team, _ victim) error {
		invitations, err := other.Invitations(ctx)
		return wantNone(len(invitations), err)
	},
	"WithdrawInvitation": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.WithdrawInvitation(ctx, v.invited))
	},
	"Note": func(ctx context.Context, other *store.Team, v victim) error {
		return other.Note(ctx, dmarcd.AuditEntry{Team: v.token.Team, User: v.member.ID, Actor: "forged", Action: "forged"})
	},
	"Audit": func(ctx context.Context, other *store.Team, v victim) error {
		entries, err := other.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100)
		if err := wantNone(len(entries), err); err != nil {
			return err
		}
		entries, err = other.Audit(ctx, store.AuditFilter{Actor: v.member.Email}, store.Cursor{}, 100)
		return wantNone(len(entries), err)
	},
	"CreateToken": func(ctx context.Context, other *store.Team, v victim) error {
		token, err := other.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeRead, Hash: sha256.Sum256([]byte("other"))})
		if err == nil && token.Team == v.token.Team {
			err = errors.New("a token of another team resolves to the victim")
		}
		return err
	},
	"Tokens": func(ctx context.Context, other *store.Team, v victim) error {
		tokens, err := other.Tokens(ctx)
		for _, token := range tokens {
			if token.ID == v.token.ID {
				err = errors.New("the victim's token is listed")
			}
		}
		return err
	},
	"RevokeToken": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RevokeToken(ctx, v.token.ID))
	},
})

func wantNotFound(err error) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	return errors.Join(errors.New("want ErrNotFound, got"), err)
}

func wantNone(n int, err error) error {
	if n != 0 {
		err = errors.Join(err, errors.New("another team's data came back"))
	}
	return err
}

func TestNoMethodReachesAnotherTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		mine, v := addVictim(t, s)
		before := state(t, mine, v)

		methods := reflect.TypeFor[*store.Team]()
		for i := range methods.NumMethod() {
			name := methods.Method(i).Name
			attack, ok := attacks[name]
			if !ok {
				t.Errorf("store.Team.%s has no attack in this test: add one", name)
				continue
			}
			team := storetest.Team(t, s, "other "+name)
			if err := attack(t.Context(), s.Team(team.ID), v); err != nil {
				t.Errorf("%s as another team: %v", name, err)
			}
			if after := state(t, mine, v); after != before {
				t.Errorf("%s as another team changed the victim:\nbefore %+v\nafter  %+v", name, before, after)
			}
		}
	})
}

// victimsQuota is the domain quota of the victim.
const victimsQuota = 4711

func addVictim(t *testing.T, s *store.Store) (*store.Team, victim) {
	t.Helper()
	ctx := t.Context()
	team := storetest.Team(t, s, "victim")
	mine := s.Team(team.ID)
	musttest.Get(mine.AddDomain(ctx, "example.com", time.Time{}))(t)
	check := facts.Check{At: time.Unix(1e9, 0), Conclusive: true, Usable: true, Record: "v=DMARC1; p=reject", Policy: "reject", Facts: &facts.Facts{}}
	musttest.Get(mine.SaveCheck(ctx, "example.com", check, dmarcd.Plan{}))(t)
	check.Facts = nil
	check.At, check.Asked, check.Policy = check.At.Add(time.Hour), true, "none" // adds an event
	domain := musttest.Get(mine.SaveCheck(ctx, "example.com", check, dmarcd.Plan{}))(t)
	v := victim{store: s, domain: domain, sender: "crm"}
	addRecord(t, s, mine)
	musttest.Do(t, mine.SetTeamSender(ctx, dmarcd.TeamSender{Key: v.sender, Name: "CRM"}))
	receipts := musttest.Get(mine.Receive(ctx, []*dmarcd.Delivery{v.delivery()}))(t)
	v.report = receipts[0][0].ID
	rejected, err := mine.Rejected(ctx, 0, 100)
	if err != nil || len(rejected) != 1 {
		t.Fatalf("got %d rejected, %v; want 1", len(rejected), err)
	}
	v.rejected = rejected[0].ID
	webhook := musttest.Get(mine.AddWebhook(ctx, dmarcd.Webhook{URL: "https://hooks.example/", Format: dmarcd.FormatStandard}, func(dmarcd.Webhook) ([]byte, error) { return []byte("sealed"), nil }))(t)
	if v.test, err = mine.TestWebhook(ctx, webhook.ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	musttest.Do(t, mine.SetRetention(ctx, store.Retention{Originals: time.Hour, Records: 2 * time.Hour, Counters: 3 * time.Hour}))
	musttest.Do(t, mine.SetQuotas(ctx, dmarcd.Quota{dmarcd.QuotaDomains: victimsQuota}))
	token := musttest.Get(mine.CreateToken(ctx, store.NewToken{Name: "ci", Scope: dmarcd.ScopeWrite, Hash: sha256.Sum256([]byte("mine"))}))(t)
	v.token = token
	v.member, v.invited = addPeople(t, s, mine, team.ID)
	if v.mailbox, err = mine.AddMailbox(ctx, reportsMailbox(), sealFor); err != nil {
		t.Fatal(err)
	}
	until, _, err := mine.ClaimKey(ctx, answeredKey)
	musttest.Do(t, errors.Join(err, mine.SaveAnswer(ctx, answeredKey, until, store.StoredAnswer{Answer: []byte("theirs")})))
	if v.claimedUntil, _, err = mine.ClaimKey(ctx, claimedKey); err != nil {
		t.Fatal(err)
	}
	address := musttest.Get(mine.TestAddress(ctx, v.member.ID))(t)
	v.testAddress = address.Mailbox
	musttest.Do(t, mine.AddTestMail(ctx, v.testAddress, dmarcd.TestMail{ID: "1", From: "example.com"}))
	return mine, v
}

// addPeople gives the victim a member, an open invitation and an audit entry.
func addPeople(t *testing.T, s *store.Store, mine *store.Team, team dmarcd.TeamID) (member dmarcd.User, invited string) {
	t.Helper()
	ctx := t.Context()
	link, expires := sha256.Sum256([]byte("link")), time.Unix(1<<40, 0)
	err := s.CreateInvitation(ctx, link, dmarcd.Invitation{Email: "owner@example.com", Team: team, Role: dmarcd.RoleOwner, ExpiresAt: expires})
	musttest.Do(t, err)
	member = musttest.Get(s.UseInvitation(ctx, link, dmarcd.Claim{PasswordHash: "x"}))(t).User
	invited = "new@example.com"
	err = errors.Join(
		mine.Invite(ctx, sha256.Sum256([]byte("invited")), dmarcd.Invitation{Email: invited, Role: dmarcd.RoleEditor, CreatedBy: member.ID, ExpiresAt: expires}),
		mine.Note(ctx, dmarcd.AuditEntry{User: member.ID, Actor: member.Email, Action: "domain.add"}),
	)
	musttest.Do(t, err)
	return member, invited
}

// victimState is everything that the victim can read about itself.
type victimState struct {
	domain          dmarcd.Domain
	domains, tokens int
	checks, events  int
	token           string
	domainSum, sum  dmarcd.Summary
	report          string
	rejected        dmarcd.Rejected
	records         int
	retention       store.Retention
	mailboxes       string
	member          dmarcd.Member
	members, audit  int
	invitations     int
	webhooks        string
	senders         string
	testMail        string
	keys            string
}

func state(t *testing.T, mine *store.Team, v victim) victimState {
	t.Helper()
	ctx := t.Context()
	var got victimState
	var err error
	got.domain = musttest.Get(mine.Domain(ctx, v.domain.Name))(t)
	domains := musttest.Get(mine.Domains(ctx, "", 100))(t)
	tokens := musttest.Get(mine.Tokens(ctx))(t)
	checks := musttest.Get(mine.Checks(ctx, v.domain.Name, store.Times{}, store.Cursor{}, 100))(t)
	events := musttest.Get(mine.Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(t)
	got.domains, got.tokens, got.token = len(domains), len(tokens), fmt.Sprintf("%+v", tokens[0])
	got.checks, got.events = len(checks), len(events)
	got.domainSum = musttest.Get(mine.DomainSummary(ctx, v.domain.Name, dmarcd.Days{}))(t)
	got.sum = musttest.Get(mine.Summary(ctx, dmarcd.Days{}))(t)
	reports := musttest.Get(mine.Reports(ctx, store.ReportFilter{}, 0, 100))(t)
	got.report = fmt.Sprintf("%+v", reports)
	records, _, err := mine.Records(ctx, v.report, store.RecordCursor{}, 100)
	musttest.Do(t, err)
	got.records = len(records)
	got.rejected = musttest.Get(mine.RejectedByID(ctx, v.rejected))(t)
	got.retention = musttest.Get(mine.Retention(ctx))(t)
	got.testMail = fmt.Sprintf("%+v", musttest.Get(mine.TestAddress(ctx, v.member.ID))(t))
	mailboxes := musttest.Get(mine.Mailboxes(ctx))(t)
	got.mailboxes = fmt.Sprintf("%+v", mailboxes)
	webhooks := musttest.Get(mine.Webhooks(ctx))(t)
	deliveries := musttest.Get(mine.Deliveries(ctx, v.test.Webhook.ID, 0, 100))(t)
	got.webhooks = fmt.Sprintf("%+v %+v", webhooks, deliveries)
	senders := musttest.Get(mine.TeamSenders(ctx))(t)
	got.senders = fmt.Sprint(senders)
	_, answered, err := mine.ClaimKey(ctx, answeredKey)
	_, _, claimed := mine.ClaimKey(ctx, claimedKey)
	got.keys = fmt.Sprintf("%+v %v %v", answered, err, claimed) + recordState(t, mine, v)
	members := musttest.Get(mine.Members(ctx))(t)
	invitations := musttest.Get(mine.Invitations(ctx))(t)
	audit := musttest.Get(mine.Audit(ctx, store.AuditFilter{}, store.Cursor{}, 100))(t)
	got.member, got.members, got.invitations, got.audit = members[0], len(members), len(invitations), len(audit)
	return got
}
