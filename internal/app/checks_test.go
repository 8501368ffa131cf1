package app

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestParkedUntilMailPasses checks a domain that neither takes nor sends mail itself, before and
// after reports show mail of its subdomain that passes.
func TestParkedUntilMailPasses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := s.Team(storetest.Team(t, s, "a").ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		checker := dnscheck.New(dnscheck.Options{
			Resolver: dnstest.New(`example.com. TXT "v=spf1 -all"` + "\n" + `_dmarc.example.com. TXT "v=DMARC1; p=none"`), Interval: time.Hour, Now: time.Now,
		})
		for _, step := range []struct {
			passes int64
			parked bool
		}{{0, true}, {usedMessages - 1, true}, {1, false}} {
			if step.passes > 0 {
				report := storetest.Aggregate(time.Now().String(), "example.com", dmarcd.DayOf(time.Now())-1, storetest.Passed("news.example.com", step.passes))
				musttest.Get(team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(report)}))(t)
			}
			musttest.Do(t, examine(t.Context(), checker, team, "example.com", config.Config{}, dnscheck.Requested))
			if domain := musttest.Get(team.Domain(t.Context(), "example.com"))(t); domain.Parked != step.parked {
				t.Errorf("%d more messages pass: got parked %t, want %t", step.passes, domain.Parked, step.parked)
			}
		}
	})
}
