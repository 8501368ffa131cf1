package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestCNAMERecordIsGone checks a domain while the CNAME record of its managed record is there, is gone
// and is there again.
func TestCNAMERecordIsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := s.Team(storetest.Team(t, s, "a").ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
		version := musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
		target := version.Label + ".dns.example.net"
		const record = ` TXT "v=DMARC1; p=none"`
		delegated := "_dmarc.example.com CNAME " + target + "\n" + target + record
		now := time.Now().Add(-time.Hour) // entries of one second have no order
		var got []string
		for _, zone := range []string{delegated, "_dmarc.example.com" + record, delegated} {
			now = now.Add(time.Minute)
			checker := dnscheck.New(dnscheck.Options{Resolver: dnstest.New(zone), Interval: time.Hour, Now: func() time.Time { return now }})
			musttest.Do(t, service.Checks{Checker: checker, Zone: s.Zone}.Full(t.Context(), team, "example.com", dnscheck.Requested))
		}
		for _, event := range musttest.Get(team.EventsSince(t.Context(), store.EventFilter{}, 0, 100))(t) {
			if event.Finding == "dmarc.managed_elsewhere" {
				got = append(got, string(event.Kind))
			}
		}
		if want := "finding.appeared finding.resolved"; strings.Join(got, " ") != want {
			t.Errorf("got the events %v, want %s", got, want)
		}
	})
}
