package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// wantQuota checks that an error names the exhausted quota.
func (in *inbox) wantQuota(err error, name dmarcd.QuotaName) {
	in.Helper()
	var full *dmarcd.QuotaError
	if !errors.As(err, &full) || full.Name != name || !errors.Is(err, dmarcd.ErrForbidden) {
		in.Errorf("got error %v, want the quota for %s to be used up", err, name)
	}
}

func (in *inbox) setQuota(name dmarcd.QuotaName, amount int64) {
	in.Helper()
	in.must(in.team.SetQuotas(in.Context(), dmarcd.Quota{name: amount}))
}

func (in *inbox) usage() dmarcd.Usage {
	in.Helper()
	return musttest.Get(in.team.Usage(in.Context()))(in)
}

// unreadable returns a delivery of that many bytes without a report.
func unreadable(way dmarcd.Intake, bytes int) *dmarcd.Delivery {
	return &dmarcd.Delivery{
		Intake: way, Original: storetest.Original(content(bytes)),
		Rejections: []dmarcd.Rejection{{Reason: "A test."}, {Member: "second", Reason: "A test."}},
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		clock := newClock()
		s := db.Open(t, store.Options{Now: clock.Now, Quota: dmarcd.Quota{dmarcd.QuotaReports: 2, dmarcd.QuotaMailboxes: 1}})
		in := &inbox{T: t, db: db, clock: clock, store: s, team: newTeam(t, s, "a")}
		in.add(ours)
		in.wantReceived("stored stored", report("1", ours, storetest.Passed(ours, 5)), report("2", ours, storetest.Passed(ours, 5)))
		receive := func(id string) error {
			_, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{storetest.Delivery(report(id, ours, storetest.Passed(ours, 5)))})
			return err
		}
		in.wantQuota(receive("3"), dmarcd.QuotaReports)
		in.wantQuota(in.team.Admit(in.Context()), dmarcd.QuotaReports)
		clock.advance(24 * time.Hour)
		in.must(receive("3"))
		in.must(in.team.Admit(in.Context()))

		in.setQuota(dmarcd.QuotaStored, 1000)
		in.wantQuota(receive("4"), dmarcd.QuotaStored)
		// Acknowledged mail is stored.
		mail := storetest.Delivery(report("4", ours, storetest.Passed(ours, 5)))
		mail.Intake = dmarcd.IntakeSMTP
		in.deliver(mail)
		in.setQuota(dmarcd.QuotaStored, 1<<20)
		in.setQuota(dmarcd.QuotaReports, 0)
		in.must(receive("5"))

		in.setQuota(dmarcd.QuotaDomains, 2)
		in.add("second.example")
		_, err := in.team.AddDomain(in.Context(), "third.example", clock.Now())
		in.wantQuota(err, dmarcd.QuotaDomains)

		musttest.Get(in.team.AddMailbox(in.Context(), reportsMailbox(), sealFor))(t)
		_, err = in.team.AddMailbox(in.Context(), reportsMailbox(), sealFor)
		in.wantQuota(err, dmarcd.QuotaMailboxes)

		usage := in.usage()
		if usage[dmarcd.QuotaDomains] != 2 || usage[dmarcd.QuotaMailboxes] != 1 || usage[dmarcd.QuotaReports] != 3 || usage[dmarcd.QuotaStored] == 0 {
			t.Errorf("got the usage %v, want 2 domains, 1 mailbox, 3 reports today and some bytes", usage)
		}
		uses := musttest.Get(s.QuotaUse(t.Context()))(t)
		want := map[dmarcd.QuotaName]store.QuotaUse{
			dmarcd.QuotaDomains:   {Near: 1, Full: 1, Highest: 1},
			dmarcd.QuotaMailboxes: {Near: 1, Full: 1, Highest: 1},
			dmarcd.QuotaStored:    {Highest: float64(usage[dmarcd.QuotaStored]) / (1 << 20)},
		}
		if diff := cmp.Diff(want, uses); diff != "" {
			t.Errorf("the use of quotas (-want +got):\n%s", diff)
		}
		in.setQuota(dmarcd.QuotaReports, 4)
		other := newTeam(t, s, "b") // uses nothing
		in.must(other.SetQuotas(t.Context(), dmarcd.Quota{dmarcd.QuotaReports: 1}))
		uses = musttest.Get(s.QuotaUse(t.Context()))(t)
		if got, want := uses[dmarcd.QuotaReports], (store.QuotaUse{Highest: 0.75}); got != want {
			t.Errorf("the use of reports: got %+v want %+v", got, want)
		}
		in.setQuota(dmarcd.QuotaReports, 0)
		free := s.Team(func() dmarcd.TeamID {
			team := musttest.Get(s.CreateTeam(t.Context(), dmarcd.DefaultTeam, true))(t)
			return team.ID
		}())
		quota := musttest.Get(free.Quota(t.Context()))(t)
		for name, amount := range quota {
			if amount != 0 {
				t.Errorf("the default team: got %d as the quota for %s, want none", amount, name)
			}
		}
		in.sound()
	})
}

func TestUnreadableItemsHaveAQuota(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.setQuota(dmarcd.QuotaUnreadable, 10_000)
		in.deliver(unreadable(dmarcd.IntakeUpload, 20_000))
		if got := in.usage()[dmarcd.QuotaUnreadable]; got < 20_000 || got > 25_000 {
			in.Errorf("got %d unreadable bytes, want about 20,000", got)
		}
		_, err := in.team.Receive(in.Context(), []*dmarcd.Delivery{unreadable(dmarcd.IntakeUpload, 300)})
		in.wantQuota(err, dmarcd.QuotaUnreadable)
		// A duplicate is not charged.
		in.deliver(unreadable(dmarcd.IntakeUpload, 20_000))
		// Acknowledged mail is listed, without its original.
		in.deliver(unreadable(dmarcd.IntakeSMTP, 200_000))
		// A repeated mail changes nothing, whether its original is stored or not.
		before := in.usage()
		in.deliver(unreadable(dmarcd.IntakeSMTP, 200_000), unreadable(dmarcd.IntakeSMTP, 20_000))
		if diff := cmp.Diff(before, in.usage()); diff != "" {
			in.Errorf("the usage after the same mails (-before +after):\n%s", diff)
		}
		rejected := musttest.Get(in.team.Rejected(in.Context(), 0, 100))(in)
		if len(rejected) != 4 || rejected[0].Size != 0 || in.rows("originals") != 1 {
			in.Errorf("got %d rejected items with %d originals, want 4 with one", len(rejected), in.rows("originals"))
		}
		// Reports are still received.
		in.wantReceived("unclaimed", report("1", ours, storetest.Passed(ours, 5)))
		in.sound()
		for _, r := range rejected {
			in.must(in.team.SettleRejected(in.Context(), r.ID))
		}
		if got := in.usage()[dmarcd.QuotaUnreadable]; got != 0 {
			in.Errorf("after they are gone: got %d unreadable bytes, want none", got)
		}
		in.sound()
	})
}

// TestDeletingGivesTheQuotaBack stores reports and unreadable items, and removes them in
// every possible way.
func TestDeletingGivesTheQuotaBack(t *testing.T) {
	fill := func(in *inbox) {
		in.add(ours)
		domain := musttest.Get(in.team.Domain(in.Context(), ours))(in)
		in.wantReceived("stored replaced", report("1", ours, storetest.Passed(ours, 5), storetest.Failed(ours, 2)), report("1", ours, storetest.Passed(ours, 6)))
		large := unreadable(dmarcd.IntakeSMTP, 3*chunk)
		large.Domain = domain.ID
		in.deliver(large)
		long := report("2", ours, storetest.Passed(ours, 1))
		long.TextBytes = chunk
		in.receive(long)
		if got := in.usage()[dmarcd.QuotaStored]; got < 4*chunk {
			in.Fatalf("got %d bytes stored, want at least the %d that were sent and the texts of a report", got, 3*chunk)
		}
	}
	for name, remove := range map[string]func(in *inbox){
		"a domain is deleted": func(in *inbox) {
			in.delete(ours)
			in.purge()
			if got := in.rows("rejected"); got != 0 {
				in.Errorf("got %d rejected items of the deleted domain, want none", got)
			}
		},
		"it is past its time": func(in *inbox) {
			in.clock.advance(ofDays(100))
			in.expire(store.Retention{Originals: ofDays(10), Rejected: ofDays(10), Records: ofDays(10), Counters: ofDays(20)})
		},
		"originals go before records": func(in *inbox) {
			in.clock.advance(ofDays(100))
			in.expire(store.Retention{Originals: ofDays(10)})
			in.expire(store.Retention{Rejected: ofDays(10)})
			in.expire(store.Retention{Records: ofDays(10)})
			in.expire(store.Retention{Records: ofDays(10), Counters: ofDays(20)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachInbox(t, func(in *inbox) {
				fill(in)
				remove(in)
				in.purge() // removes expired reports
				if usage := in.usage(); usage[dmarcd.QuotaStored] != 0 || usage[dmarcd.QuotaUnreadable] != 0 {
					in.Errorf("got the usage %v, want nothing stored", usage)
				}
				in.sound()
			})
		})
	}
}

// TestOddMailboxes looks up text that cannot be an address, and text that PostgreSQL rejects.
func TestOddMailboxes(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		for _, mailbox := range []string{"", "ab\x00c", "abc\x1b", "abc\x7f", "abc\u0085", "abc\xff", "a b", strings.Repeat("x", 65)} {
			if _, err := in.store.RecipientOf(in.Context(), mailbox); !errors.Is(err, dmarcd.ErrNotFound) {
				in.Errorf("%q: got error %v, want ErrNotFound", mailbox, err)
			}
		}
	})
}

func TestRetiredMailboxes(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		first := addDomain(in, in.team, ours)
		in.delete(ours)
		if _, err := in.store.RecipientOf(in.Context(), first.ReportMailbox); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("the address of a deleted domain: got error %v, want ErrNotFound", err)
		}
		if in.store.ActiveMailbox(in.Context())(first.ReportMailbox) {
			in.Error("the address of a deleted domain is active")
		}
		if other := addDomain(in, newTeam(in.T, in.store, "other"), ours); other.ReportMailbox == first.ReportMailbox {
			in.Error("another team got the address")
		}
		in.clock.advance(ofDays(89))
		forget := func() {
			musttest.Get(in.store.ForgetMailboxes(in.Context()))(in)
		}
		forget()
		if again := addDomain(in, in.team, ours); again.ReportMailbox != first.ReportMailbox {
			in.Error("a domain that was added again within 90 days has another address")
		}
		to, err := in.store.RecipientOf(in.Context(), first.ReportMailbox)
		if err != nil || to.Domain != ours {
			in.Errorf("got %v and error %v, want the domain that was added again", to, err)
		}
		in.purge()
		in.delete(ours)
		in.clock.advance(ofDays(91))
		forget()
		names := []string{ours, "second.example"}
		musttest.Get(in.team.AddDomains(in.Context(), names, in.clock.Now()))(in)
		late := musttest.Get(in.team.Domain(in.Context(), ours))(in)
		if late.ReportMailbox == first.ReportMailbox {
			in.Error("a domain that was added again after 90 days has the old address")
		}
		// This also applies to many domains at once.
		before := in.addresses(names)
		for _, name := range names {
			in.delete(name)
		}
		musttest.Get(in.team.AddDomains(in.Context(), append(names, "third.example"), in.clock.Now()))(in)
		if after := in.addresses(names); !slices.Equal(before, after) {
			in.Errorf("got the addresses %v, want %v", after, before)
		}
		in.sound()
	})
}

// addresses returns the reporting addresses of domains.
func (in *inbox) addresses(names []string) (mailboxes []string) {
	in.Helper()
	for _, name := range names {
		domain := musttest.Get(in.team.Domain(in.Context(), name))(in)
		mailboxes = append(mailboxes, domain.ReportMailbox)
	}
	return mailboxes
}
