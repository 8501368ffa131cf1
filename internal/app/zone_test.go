package app_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	eventually "github.com/dmarcd/dmarcd/test/daemon"
)

// zoneSettings are the settings of a zone at a free port.
var zoneSettings = []string{
	"DMARCD_ZONE=dns.example.net", "DMARCD_ZONE_LISTEN=127.0.0.1:0",
	"DMARCD_ZONE_NAMESERVERS=ns1.dns.example.net=127.0.0.1,ns2.example.org",
}

// zoneAddress returns where a daemon answers DNS queries.
func zoneAddress(t *testing.T, log *syncBuffer) string {
	t.Helper()
	_, rest, found := strings.Cut(log.String(), `"msg":"answering DNS queries","address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("got no address in the log:\n%s", log)
	}
	return address
}

// lookUp returns the text of a name, and the response code.
func lookUp(t *testing.T, server, name string) string {
	t.Helper()
	client := mdns.Client{Timeout: time.Minute}
	reply, _, err := client.Exchange(new(mdns.Msg).SetQuestion(mdns.Fqdn(name), mdns.TypeTXT), server)
	musttest.Do(t, err)
	for _, rr := range reply.Answer {
		return strings.Join(rr.(*mdns.TXT).Txt, "")
	}
	return mdns.RcodeToString[reply.Rcode]
}

// TestZone publishes and stops records beside two running replicas, and restarts one.
func TestZone(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		first := start(t, db, zoneSettings...)
		second := start(t, db, zoneSettings...)
		eventually.Eventually(t, time.Minute, "both daemons answer", func() bool {
			return strings.Contains(first.log.String(), "answering DNS queries") && strings.Contains(second.log.String(), "answering DNS queries")
		})
		s := db.Open(t, store.Options{})
		team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
		musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
		v := musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
		served := func(of *syncBuffer, want string) {
			t.Helper()
			server := zoneAddress(t, of)
			eventually.Eventually(t, time.Minute, "a daemon serves "+want, func() bool { return lookUp(t, server, v.Label+".dns.example.net") == want })
		}
		served(first.log, "v=DMARC1; p=none")
		served(second.log, "v=DMARC1; p=none")
		musttest.Get(team.PublishRecord(t.Context(), "example.com", 1, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}, nil))(t)
		served(first.log, "v=DMARC1; p=reject")
		served(second.log, "v=DMARC1; p=reject")
		if got := lookUp(t, zoneAddress(t, first.log), "missing.dns.example.net"); got != "NXDOMAIN" {
			t.Errorf("a name that was never given: got %s", got)
		}
		musttest.Do(t, first.stop())
		again := start(t, db, zoneSettings...)
		eventually.Eventually(t, time.Minute, "the daemon answers again", func() bool { return strings.Contains(again.log.String(), "answering DNS queries") })
		served(again.log, "v=DMARC1; p=reject")
	})
}

// TestZoneThatStopsTheStart checks the errors of a start, which are one line each.
func TestZoneThatStopsTheStart(t *testing.T) {
	t.Parallel()
	taken := musttest.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	db := storetest.EmptySQLite(t)
	musttest.Do(t, start(t, db, zoneSettings...).stop())
	s := db.Open(t, store.Options{})
	team := s.Team(musttest.Get(s.TeamByName(t.Context(), "default"))(t).ID)
	musttest.Get(team.AddDomain(t.Context(), "example.com", time.Now().Add(time.Hour)))(t)
	musttest.Get(team.PublishRecord(t.Context(), "example.com", 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}, nil))(t)
	for _, test := range []struct{ name, setting, want string }{
		{"another zone", "DMARCD_ZONE=other.example.net", "Set DMARCD_ZONE=dns.example.net"},
		{"a port that is in use", "DMARCD_ZONE_LISTEN=" + taken.LocalAddr().String(), "DMARCD_ZONE_LISTEN"},
		{"a key that is too short", "DMARCD_ZONE_SECONDARIES=192.0.2.1=key:c2hvcnQ=", "DMARCD_ZONE_SECONDARIES"},
	} {
		environ := append([]string{test.setting, "DMARCD_DATABASE=" + db.DSN, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0"}, zoneSettings...)
		effective := musttest.Get(config.Load(config.Input{Environ: environ}))(t)
		_, err := app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "c2hvcnQ") {
			t.Errorf("%s: got %v, want one line with %q", test.name, err, test.want)
		}
	}
}

// TestDoctorAsksForTheDelegation compares the NS records of the zone with the configuration.
func TestDoctorAsksForTheDelegation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, zone string
		state      app.DiagnosisState
		message    string
	}{
		{"not delegated", "", app.Sick, "is not delegated"},
		{"delegated", "dns.example.net. NS ns1.dns.example.net.\ndns.example.net. NS NS2.example.org.", app.Healthy, "is delegated to"},
		{"to one of them", "dns.example.net. NS ns2.example.org.", app.Sick, "but not to ns1.dns.example.net"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := resolvertest.Start(t, row.zone)
			environ := append([]string{"DMARCD_DATA=" + t.TempDir(), "DMARCD_DNS=" + server.Addr()}, zoneSettings...)
			effective := musttest.Get(config.Load(config.Input{Environ: environ}))(t)
			var found []app.Diagnosis
			for _, d := range app.Diagnose(t.Context(), effective.Config, environ) {
				if d.Part == "zone" {
					found = append(found, d)
				}
			}
			// One about the delegation, one about the address of ns1, one about ns2, which has none.
			if len(found) != 3 || found[0].State != row.state || !strings.Contains(found[0].What, row.message) || !strings.Contains(found[2].What, "ns2.example.org has no address") {
				t.Errorf("got %+v, want three, the first %s that says %q", found, row.state, row.message)
			}
		})
	}
}
