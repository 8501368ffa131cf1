package store_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
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
			mail, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, sentLimits(10_000))
			in.must(err)
			return mail
		}
		for _, name := range []string{"", ours} {
			first := read(name)
			if again := read(name); again != first || len(first.Shares[0].Records) != len(many) {
				in.Errorf("%q: got another answer with %d shares, want the one before", name, len(again.Shares))
			}
			if mail, err := other.Sent(in.Context(), name, dmarcd.Days{}, sentLimits(10_000)); err != nil || len(mail.Shares) != 0 {
				in.Errorf("%q: another team got %d shares, %v", name, len(mail.Shares), err)
			}
			if _, err := in.team.Sent(in.Context(), name, dmarcd.Days{}, sentLimits(5999)); err == nil {
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

func manySent(records int) *dmarcd.SentMail {
	return &dmarcd.SentMail{Shares: []dmarcd.SentShare{{Records: make([]dmarcd.Sent, records)}}}
}

// TestRecentMailExpires checks that an answer leaves the cache five minutes after its
// last use, whether or not anything is read after that.
func TestRecentMailExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cache store.RecentMail
		cache.Put("used", manySent(10_000))
		cache.Put("unused", manySent(10_000))
		time.Sleep(4 * time.Minute)
		if cache.Get("used") == nil {
			t.Error("got nothing after 4 minutes, want the cached answer")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if answers, _ := cache.Len(); answers != 1 {
			t.Errorf("after 6 minutes got %d answers, want the one that was used", answers)
		}
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		if answers, bytes := cache.Len(); answers != 0 || bytes != 0 {
			t.Errorf("5 minutes after the last use got %d answers of %d bytes, want none", answers, bytes)
		}
	})
}

func TestRecentMailIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cache store.RecentMail
		const half = 1_300_000 // records take somewhat less than half of the cache
		for _, domain := range []string{"a", "b", "a", "c"} {
			cache.Put(domain, manySent(half))
		}
		cache.Put("too large", manySent(3*half))
		cache.Put("too small", manySent(10))
		if answers, bytes := cache.Len(); answers != 2 || bytes > 64<<20 {
			t.Errorf("got %d answers of %d bytes, want 2", answers, bytes)
		}
		if cache.Get("a") == nil || cache.Get("c") == nil {
			t.Error("the answers used last are not cached")
		}
	})
}
