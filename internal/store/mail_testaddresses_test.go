package store_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestTestAddresses wants one address for a user and an hour, ten mails at most, each once, and
// nothing left after the hour.
func TestTestAddresses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		now := time.Unix(1_800_000_000, 0).UTC()
		s := db.Open(t, store.Options{Now: func() time.Time { return now }})
		team := s.Team(storetest.Team(t, s, "team").ID)
		ctx := t.Context()
		first := musttest.Get(team.TestAddress(ctx, 7))(t)
		again, other := musttest.Get(team.TestAddress(ctx, 7))(t), musttest.Get(team.TestAddress(ctx, 8))(t)
		if first.Mailbox != again.Mailbox || first.Mailbox == other.Mailbox || !first.ExpiresAt.Equal(now.Add(dmarcd.TestAddressLife)) {
			t.Errorf("got %+v, then %+v, and %+v for another user, want one for each and an hour", first, again, other)
		}
		mail := dmarcd.TestMail{
			ID: "0", At: now, From: "example.com", Client: netip.MustParseAddr("192.0.2.1"), SPF: "pass", SPFDomain: "bounce.example.com", SPFAligned: true, DMARC: "pass",
			Signatures: []dmarcd.TestSignature{{Domain: "example.com", Selector: "s1", Result: "fail", Reason: "no key", Aligned: true}},
			Policy:     "reject", RecordDomain: "example.com",
		}
		for i := range dmarcd.MaxTestMails {
			if _, err := s.TestRecipient(ctx, first.Mailbox); err != nil {
				t.Fatalf("mail %d: got %v, want it accepted", i, err)
			}
			mail.ID = fmt.Sprint(i)
			musttest.Do(t, team.AddTestMail(ctx, first.Mailbox, mail))
			musttest.Do(t, team.AddTestMail(ctx, first.Mailbox, mail)) // repeated
		}
		_, err := s.TestRecipient(ctx, first.Mailbox)
		mail.ID = "more"
		if add := team.AddTestMail(ctx, first.Mailbox, mail); !errors.Is(err, dmarcd.ErrLimit) || !errors.Is(add, dmarcd.ErrLimit) {
			t.Errorf("after ten mails: got %v and %v, want ErrLimit", err, add)
		}
		full := musttest.Get(team.TestAddress(ctx, 7))(t)
		mail.ID = "9"
		if len(full.Mails) != dmarcd.MaxTestMails {
			t.Fatalf("got %d mails, want ten", len(full.Mails))
		}
		if diff := cmp.Diff(mail, full.Mails[0], cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("the newest mail (-want +got):\n%s", diff)
		}
		now = now.Add(dmarcd.TestAddressLife)
		if _, err := s.TestRecipient(ctx, first.Mailbox); !errors.Is(err, dmarcd.ErrNotFound) {
			t.Errorf("after an hour: got %v, want ErrNotFound", err)
		}
		if late := team.AddTestMail(ctx, other.Mailbox, mail); !errors.Is(late, dmarcd.ErrNotFound) {
			t.Errorf("a mail after an hour: got %v, want ErrNotFound", late)
		}
		next := musttest.Get(team.TestAddress(ctx, 7))(t)
		if next.Mailbox == first.Mailbox || len(next.Mails) != 0 {
			t.Errorf("got %+v after an hour, want a new address", next)
		}
		musttest.Get(s.PurgeTestAddresses(ctx))(t)
		var left int
		if err := db.SQL(t).QueryRowContext(ctx, `SELECT count(*) FROM test_addresses`).Scan(&left); err != nil || left != 1 {
			t.Errorf("got %d addresses and %v, want the new one alone", left, err)
		}
	})
}
