package service_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// order is an order of a certificate.
type order struct {
	host string
	at   time.Time
}

// authority issues certificates of 90 days at once. early is when it suggests to replace the first one
// of a host, by host; others are replaced after 60 days.
type authority struct {
	now    time.Time
	orders []order
	early  map[string]time.Time
	issued map[string]time.Time
}

func (a *authority) Order(_ context.Context, host string) error {
	a.orders = append(a.orders, order{host, a.now})
	if !a.issued[host].IsZero() {
		delete(a.early, host)
	}
	a.issued[host] = a.now
	return nil
}

func (a *authority) Renewal(_ context.Context, host string) (notAfter, renewAt time.Time, err error) {
	at, ok := a.issued[host]
	if !ok {
		return time.Time{}, time.Time{}, fs.ErrNotExist
	}
	renewAt = at.Add(60 * 24 * time.Hour)
	if early, ok := a.early[host]; ok {
		renewAt = early
	}
	return at.Add(90 * 24 * time.Hour), renewAt, nil
}

func (a *authority) Identities(context.Context) ([]string, error) { return []string{"ca.test"}, nil }

func (a *authority) Remove(context.Context, string) error { return nil }

// after returns how many orders of some hosts there were since a time.
func (a *authority) after(since time.Time, of func(host string) bool) (n int) {
	for _, o := range a.orders {
		if !o.at.Before(since) && of(o.host) {
			n++
		}
	}
	return n
}

// servedPolicies answers with the same policy at each host.
type servedPolicies struct{}

func (servedPolicies) RoundTrip(r *http.Request) (*http.Response, error) {
	chain := []*x509.Certificate{{DNSNames: []string{r.URL.Hostname()}}}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(testingPolicy)),
		TLS:  &tls.ConnectionState{PeerCertificates: chain, VerifiedChains: [][]*x509.Certificate{chain}},
	}, nil
}

const testingPolicy = "version: STSv1\nmode: testing\nmx: mail.example.com\nmax_age: 604800"

// policyTeams is two teams with MTA-STS records, and what serves them.
type policyTeams struct {
	*testing.T

	authority *authority
	store     *store.Store
	service   *service.Service
	zone      strings.Builder
}

// publish publishes policies for domains of a team.
func (p *policyTeams) publish(name string, domains ...string) {
	p.Helper()
	team := p.store.Team(storetest.Team(p.T, p.store, name).ID)
	for _, domain := range domains {
		musttest.Get(team.AddDomain(ctx, domain, p.authority.now.Add(time.Hour)))(p)
		v := musttest.Get(team.PublishRecord(ctx, domain, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordMTASTS, Content: testingPolicy}, nil))(p)
		fmt.Fprintf(&p.zone, "mta-sts.%s. CNAME %s.dns.example.net.\n%[2]s.dns.example.net. A 192.0.2.1\n", domain, v.Label)
	}
}

// run does what the job does, a host of each team in turn, until the next order is possible later.
func (p *policyTeams) run() {
	p.Helper()
	for idle := 0; idle < 3; {
		teams := musttest.Get(p.store.PolicyTeams(ctx))(p)
		slots := make(map[dmarcd.TeamID]int)
		for _, team := range teams {
			slots[team] = 1
		}
		version, _, err := p.store.PolicyHosts(ctx, 0)
		musttest.Do(p, err)
		musttest.Do(p, p.store.LeasePolicies(ctx, version))
		for _, h := range musttest.Get(p.store.ClaimPolicyHosts(ctx, time.Minute, slots))(p) {
			musttest.Do(p, p.service.CheckPolicyHost(ctx, h))
		}
		if idle++; len(teams) > 0 {
			idle = 0
		} else {
			p.authority.now = p.authority.now.Add(time.Second)
		}
	}
}

// TestOrderLimits has two teams with more hosts than the authority allows to order certificates for.
func TestOrderLimits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	p := &policyTeams{T: t, authority: &authority{now: start, issued: make(map[string]time.Time), early: make(map[string]time.Time)}}
	now := func() time.Time { return p.authority.now }
	p.store = storetest.SQLite(t).Open(t, store.Options{Now: now})
	musttest.Get(p.store.OpenZone(ctx, "dns.example.net", ""))(t)
	var large []string
	for i := range 220 {
		large = append(large, fmt.Sprintf("d%d.example", i))
	}
	for i := range 45 {
		large = append(large, fmt.Sprintf("d%d.big.example", i))
	}
	p.publish("large", large...)
	p.publish("small", "one.test", "two.test", "three.test")
	p.service = service.New(p.store, service.Options{
		DNS: dnstest.New(p.zone.String()), Now: now,
		Policies: &service.Policies{Certificates: p.authority, Client: &http.Client{Transport: servedPolicies{}}},
	})
	every := func(string) bool { return true }
	isBig := func(host string) bool { return strings.HasSuffix(host, ".big.example") }
	isSmall := func(host string) bool { return strings.HasSuffix(host, ".test") }
	// The authority suggests to replace some certificates within the hour.
	for i := range 10 {
		p.authority.early[fmt.Sprintf("mta-sts.d%d.example", i)] = start.Add(time.Hour)
	}

	p.run()
	if n, small := p.authority.after(start, every), p.authority.after(start, isSmall); n != 200 || small != 3 {
		t.Errorf("first: got %d orders and %d of the small team, want 200 and 3", n, small)
	}
	renewals := 0
	for host := range p.authority.early {
		if !p.authority.issued[host].IsZero() {
			renewals++
		}
	}
	p.authority.now = start.Add(time.Hour)
	p.run()
	if n := p.authority.after(start.Add(time.Hour), every); n != renewals || n == 0 {
		t.Errorf("after an hour: got %d orders, want the %d renewals", n, renewals)
	}
	p.authority.now = start.Add(3 * time.Hour)
	p.run()
	if n, big := p.authority.after(start, every), p.authority.after(start, isBig); n != 223+10+32 || big != 32 {
		t.Errorf("after three hours: got %d orders and %d of the organizational domain, want all and 32", n, big)
	}
	p.authority.now = start.Add(7*24*time.Hour + 4*time.Hour)
	p.run()
	if big := p.authority.after(start, isBig); big != 45 {
		t.Errorf("after a week: got %d orders of the organizational domain, want 45", big)
	}
	for _, first := range p.authority.orders {
		n := 0
		for _, o := range p.authority.orders {
			if d := o.at.Sub(first.at); d >= 0 && d < 3*time.Hour {
				n++
			}
		}
		if n > 250 {
			t.Fatalf("got %d orders in three hours from %v", n, first.at)
		}
	}
}
