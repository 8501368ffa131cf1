package store_test

import (
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSentIsRemembered holds that many records are read once, until one comes or goes,
// and by nobody else.
func TestSentIsRemembered(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		in.add(ours)
		var many []aggregate.Record
		for i := range int64(6000) {
			many = append(many, storetest.Passed(ours, 1+i%9))
		}
		in.wantReceived("stored", report("1", ours, many...))
		other := newTeam(in.T, in.store, "b")
		addDomain(in, other, ours)
		read := func(name string) *dmarcd.SentMail {
			in.Helper()
			mail, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, 10_000)
			in.must(err)
			return mail
		}
		for _, name := range []string{"", ours} {
			first := read(name)
			if again := read(name); again != first || len(first.Shares[0].Records) != len(many) {
				in.Errorf("%q: got another answer with %d shares, want the one before", name, len(again.Shares))
			}
			if mail, err := other.Sent(in.Context(), name, dmarcd.Days{}, 10_000); err != nil || len(mail.Shares) != 0 {
				in.Errorf("%q: another team got %d shares, %v", name, len(mail.Shares), err)
			}
			if _, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, 5999); err == nil {
				in.Errorf("%q: what is remembered passed a limit", name)
			}
		}
		in.wantReceived("stored", report("2", ours, storetest.Failed(ours, 1)))
		for _, name := range []string{"", ours} {
			if got := len(read(name).Shares); got != 2 {
				in.Errorf("%q: got %d shares after another report, want 2", name, got)
			}
		}
		in.delete(ours)
		for _, name := range []string{"", ours} {
			if got := len(read(name).Shares); got != 0 {
				in.Errorf("%q: got %d shares after the domain was deleted, want none", name, got)
			}
		}
	})
}
