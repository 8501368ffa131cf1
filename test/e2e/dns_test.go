package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// The documented limits are 2 s for a creation and 5 s for a verification. These allow
// for a busy machine, and are far below the minute of patient.
const (
	creationLimit     = 20 * time.Second
	verificationLimit = 25 * time.Second
)

// patient makes the resolver wait for a server far longer than a request may take.
const patient = "DMARCD_RESOLVER_TIMEOUT=1m"

func TestCreationDoesNotWaitForSilentDNS(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		in.dns.SetFault("*", resolvertest.Drop)
		for i, settings := range [][]string{{patient}, nil} {
			s := in.serve(settings...)
			a := s.send(adding(in.token, []string{"example.net", "example.com"}[i]))
			a.wantStatus(t, http.StatusCreated)
			if a.took > creationLimit {
				t.Errorf("%v: took %v want at most %v", settings, a.took, creationLimit)
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
		if a.took > verificationLimit {
			t.Errorf("took %v want at most %v", a.took, verificationLimit)
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
			if a.took > fast {
				t.Errorf("%s: took %v want at most %v", name, a.took, fast)
			}
			if got := a.header.Get("Dmarcd-Check"); got != "inconclusive" {
				t.Errorf("%s: Dmarcd-Check: got %q want inconclusive", name, got)
			}
			if diff := cmp.Diff(before, readDomain(t, a.body)); diff != "" {
				t.Errorf("%s: the domain (-before +after):\n%s", name, diff)
			}
			created := s.send(adding(in.token, strings.ToLower(strings.ReplaceAll(name, " ", "-"))+".example"))
			created.wantStatus(t, http.StatusCreated)
			if created.took > fast {
				t.Errorf("%s: the creation took %v want at most %v", name, created.took, fast)
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
	const clients = 10
	each(t, exampleZone, func(t *testing.T, in *installation) {
		// One query takes long enough for all clients to arrive.
		s := in.serve(patient, unscheduled)
		s.add("example.com")
		asked := in.dns.Asked("_dmarc.example.com", dns.TXT)
		queries := s.queries()
		release := in.dns.Hold("_dmarc.example.com")
		var asking sync.WaitGroup
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
			})
		}
		// Each client reads the domain before it queries DNS. When all are waiting, the
		// database is idle.
		const rest = 500 * time.Millisecond
		seen, changed := 0, time.Now()
		daemon.Eventually(t, 4*time.Second, "all verifications are waiting for the DNS", func() bool {
			now := s.queries() - queries
			if now != seen {
				seen, changed = now, time.Now()
			}
			return now >= clients && time.Since(changed) > rest
		})
		release()
		asking.Wait()
		if got := in.dns.Asked("_dmarc.example.com", dns.TXT) - asked; got != 1 {
			t.Errorf("got %d questions for %d verifications at once, want 1", got, clients)
		}
	})
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
