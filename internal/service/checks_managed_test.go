package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestManagedRecordIsGone checks a domain while the CNAME record of its managed record and the term of its SPF record
// are there, are gone and are there again.
func TestManagedRecordIsGone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := s.Team(storetest.Team(t, s, "a").ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
		publish := func(kind dmarcd.RecordKind, text, served string) (target string) {
			answer := func(string) []store.ZoneRecord { return []store.ZoneRecord{{Type: dns.TXT, Data: served}} }
			v := musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: kind, Content: text}, answer))(t)
			return v.Label + ".dns.example.net"
		}
		const record, flat = "v=DMARC1; p=none", "v=spf1 ip4:192.0.2.1 -all"
		dmarc, spf := publish(dmarcd.RecordDMARC, record, record), publish(dmarcd.RecordSPF, "v=spf1 a -all", flat)
		delegated := fmt.Sprintf("_dmarc.example.com CNAME %s\n%[1]s TXT %q\nexample.com TXT \"v=spf1 redirect=%s\"\n%[3]s TXT %q", dmarc, record, spf, flat)
		own := fmt.Sprintf("_dmarc.example.com TXT %q\nexample.com TXT %q", record, flat)
		now := time.Now().Add(-time.Hour) // entries of one second have no order
		for _, zone := range []string{delegated, own, delegated} {
			now = now.Add(time.Minute)
			checker := dnscheck.New(dnscheck.Options{Resolver: dnstest.New(zone), Interval: time.Hour, Now: func() time.Time { return now }})
			musttest.Do(t, service.Checks{Checker: checker, Zone: s.Zone}.Full(t.Context(), team, "example.com", dnscheck.Requested))
		}
		got := map[string]string{}
		for _, event := range musttest.Get(team.EventsSince(t.Context(), store.EventFilter{}, 0, 100))(t) {
			if strings.Contains(event.Finding, ".managed_") {
				got[event.Finding] += string(event.Kind) + " "
			}
		}
		const want = "finding.appeared finding.resolved "
		if len(got) != 2 || got["dmarc.managed_elsewhere"] != want || got["spf.managed_elsewhere"] != want {
			t.Errorf("got the events %v, want %s for both records", got, want)
		}
	})
}
