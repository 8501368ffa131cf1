package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// The documented limits are 2 s for a creation and 5 s for a verification. These are far below the
// minute of patient; see slow for busy machines.
const (
	creationLimit     = 20 * time.Second
	verificationLimit = 25 * time.Second
)

// slow returns how long a request may take that took so long: the limit or, where the machine is
// busy, a multiple of what a request takes now that waits for nothing.
func (s *server) slow(limit, took time.Duration) time.Duration {
	if took <= limit {
		return limit
	}
	for range 3 {
		limit = max(limit, 20*s.send(request{method: http.MethodGet, path: "/domains", token: s.in.token}).took)
	}
	return limit
}

// patient makes the resolver wait for a server far longer than a request may take.
const patient = "DMARCD_RESOLVER_TIMEOUT=1m"

func TestCreationDoesNotWaitForSilentDNS(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		in.dns.SetFault("*", resolvertest.Drop)
		for i, settings := range [][]string{{patient}, nil} {
			s := in.serve(settings...)
			a := s.send(adding(in.token, []string{"example.net", "example.com"}[i]))
			a.wantStatus(t, http.StatusCreated)
			if limit := s.slow(creationLimit, a.took); a.took > limit {
				t.Errorf("%v: took %v want at most %v", settings, a.took, limit)
			}
			if got := readDomain(t, a.body).findings(); got != (findings{}) {
				t.Errorf("%v: got %v want nothing found yet", settings, got)
			}
			if settings != nil {
				s.Stop()
				continue
			}
			in.dns.SetFault("*", resolvertest.None)
			daemon.Eventually(t, time.Minute, "the domain is checked in the background", func() bool {
				return s.read("example.com").findings() == findings{true, exampleRecord, "reject"}
			})
		}
	})
}

func TestVerificationDoesNotWaitForSilentDNS(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve(patient)
		before := s.add("example.com")
		in.dns.SetFault("*", resolvertest.Drop)
		a := s.send(verifying(in.token, "example.com"))
		a.wantStatus(t, http.StatusOK)
		if limit := s.slow(verificationLimit, a.took); a.took > limit {
			t.Errorf("took %v want at most %v", a.took, limit)
		}
		if got := a.header.Get("Dmarcd-Check"); got != "inconclusive" {
			t.Errorf("Dmarcd-Check: got %q want inconclusive", got)
		}
		if diff := cmp.Diff(before, readDomain(t, a.body)); diff != "" {
			t.Errorf("the domain (-before +after):\n%s", diff)
		}
	})
}

func TestFailingDNSChangesNothing(t *testing.T) {
	// Less than a verification waits for a silent server.
	const fast = 4 * time.Second
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve()
		before := s.add("example.com")
		faults := map[string]resolvertest.Fault{
			"SERVFAIL": resolvertest.ServFail, "REFUSED": resolvertest.Refused, "a lame server": resolvertest.Referral,
		}
		for name, fault := range faults {
			in.dns.SetFault("*", fault)
			a := s.send(verifying(in.token, "example.com"))
			if limit := s.slow(fast, a.took); a.took > limit {
				t.Errorf("%s: took %v want at most %v", name, a.took, limit)
			}
			if got := a.header.Get("Dmarcd-Check"); got != "inconclusive" {
				t.Errorf("%s: Dmarcd-Check: got %q want inconclusive", name, got)
			}
			if diff := cmp.Diff(before, readDomain(t, a.body)); diff != "" {
				t.Errorf("%s: the domain (-before +after):\n%s", name, diff)
			}
			created := s.send(adding(in.token, strings.ToLower(strings.ReplaceAll(name, " ", "-"))+".example"))
			created.wantStatus(t, http.StatusCreated)
			if limit := s.slow(fast, created.took); created.took > limit {
				t.Errorf("%s: the creation took %v want at most %v", name, created.took, limit)
			}
		}
		in.dns.SetFault("*", resolvertest.None)
		s.verify("example.com", "conclusive")
	})
}

func TestNoDNSServerAtAll(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_DNS=127.0.0.1:1")
		s.add("example.com")
		if got := s.verify("example.com", "inconclusive").findings(); got != (findings{}) {
			t.Errorf("got %v want nothing found", got)
		}
	})
}

// unscheduled disables scheduled checks, while queries are counted.
const unscheduled = "DMARCD_SCHEDULE_RATE=0"

func TestVerificationAsksPastTheCache(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		for i, policy := range []string{"none", "quarantine", "reject"} {
			// The previous record may be cached for its TTL of 300 s.
			in.setZone(`_dmarc.example.com. TXT "v=DMARC1; p=` + policy + `"`)
			before := in.dns.Asked("_dmarc.example.com", dns.TXT)
			if got := s.verify("example.com", "conclusive").Policy; got != policy {
				t.Errorf("verification %d: got the policy %q want %q", i, got, policy)
			}
			if got := in.dns.Asked("_dmarc.example.com", dns.TXT) - before; got != 1 {
				t.Errorf("verification %d: got %d questions want 1", i, got)
			}
		}
		// Negative answers must not come from the cache either.
		in.setZone("")
		s.verify("example.com", "conclusive")
		in.setZone(exampleZone)
		if got := s.verify("example.com", "conclusive").Record; got != exampleRecord {
			t.Errorf("after an answer that there is none: got %q want %q", got, exampleRecord)
		}
	})
}

func TestManyVerificationsAskOnce(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		// One query takes long enough for all clients to arrive.
		s := in.serve(patient, unscheduled)
		s.add("example.com")
		for range 20 { // a verification ends after 5 s, in which a busy machine may not have all clients arrive
			if asked, ok := s.verifyAtOnce(10); ok {
				if asked != 1 {
					t.Errorf("got %d questions for 10 verifications at once, want 1", asked)
				}
				return
			}
		}
		t.Error("the verifications never were under way at once")
	})
}

// verifyAtOnce has clients verify a domain, and returns how often DNS was asked. It returns false if
// not all of them were waiting for the same answer.
func (s *server) verifyAtOnce(clients int) (asked int, ok bool) {
	t, in := s.in.t, s.in
	t.Helper()
	before, queries := in.dns.Asked("_dmarc.example.com", dns.TXT), s.queries()
	release := in.dns.Hold("_dmarc.example.com")
	var asking sync.WaitGroup
	var conclusive atomic.Int64
	for range clients {
		asking.Go(func() {
			a, err := s.try(verifying(in.token, "example.com"))
			if err != nil {
				t.Error(err)
				return
			}
			a.wantStatus(t, http.StatusOK)
			if got := readDomain(t, a.body).Record; got != exampleRecord {
				t.Errorf("got the record %q want %q", got, exampleRecord)
			}
			if a.header.Get("Dmarcd-Check") == "conclusive" {
				conclusive.Add(1)
			}
		})
	}
	// Each client reads the domain before it queries DNS. When all are waiting, the
	// database is idle.
	const rest, limit = 500 * time.Millisecond, 4 * time.Second
	seen, began, changed := 0, time.Now(), time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok && time.Since(began) < limit {
		<-tick.C
		if now := s.queries() - queries; now != seen {
			seen, changed = now, time.Now()
		}
		ok = seen >= clients && time.Since(changed) > rest
	}
	release()
	asking.Wait()
	return in.dns.Asked("_dmarc.example.com", dns.TXT) - before, ok && conclusive.Load() == int64(clients)
}

func (s *server) metric(name string) int {
	s.in.t.Helper()
	sum := 0.0
	for line := range strings.Lines(s.outside("/metrics").text()) {
		sample, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if family, _, _ := strings.Cut(sample, "{"); family != name {
			continue
		}
		number := musttest.Get(strconv.ParseFloat(value, 64))(s.in.t)
		sum += number
	}
	return int(sum)
}

// queries returns the number of SQL statements of the server.
func (s *server) queries() int {
	s.in.t.Helper()
	return s.metric("dmarcd_database_queries_total")
}
