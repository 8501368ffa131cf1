package app

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/certificate"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// policyReplica is a replica that serves policies, with a database of its own process.
type policyReplica struct {
	*policyHosts

	t *testing.T
}

// status is what a sender gets.
func (r policyReplica) status() (int, string) {
	request := httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "https://mta-sts.one.example"+policyPath, nil)
	request.TLS = &tls.ConnectionState{ServerName: "mta-sts.one.example"}
	recorder := httptest.NewRecorder()
	r.handler(http.NotFoundHandler()).ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// TestPolicyLease has a replica that loses its database while another one publishes a policy.
func TestPolicyLease(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	now := time.Now().Truncate(time.Second)
	clock := func() time.Time { return now }
	open := func() policyReplica {
		s := db.Open(t, store.Options{Now: clock})
		log := slog.New(slog.NewTextHandler(io.Discard, nil))
		return policyReplica{t: t, policyHosts: &policyHosts{
			store: s, log: log, now: clock, byHost: make(map[string]store.PolicyHost),
			certs: certificate.NewHosts(certificate.HostsOptions{Database: s, Log: log}),
		}}
	}
	first, second := open(), open()
	s := first.store
	musttest.Get(s.OpenZone(t.Context(), "dns.example.net", ""))(t)
	team := s.Team(storetest.Team(t, s, "acme").ID)
	musttest.Get(team.AddDomain(t.Context(), "one.example", now.Add(time.Hour)))(t)
	publish := func(base int64, mode string) store.PolicyHost {
		content := "version: STSv1\nmode: " + mode + "\nmx: mail.one.example\nmax_age: 86400"
		v := musttest.Get(team.PublishRecord(t.Context(), "one.example", base, dmarcd.RecordVersion{Kind: dmarcd.RecordMTASTS, Content: content}, nil))(t)
		return musttest.Get(s.PolicyHost(t.Context(), v.Label))(t)
	}
	synced := func(replicas ...policyReplica) {
		t.Helper()
		for range 2 { // the second leases what the first has read
			for _, r := range replicas {
				musttest.Do(t, r.sync(t.Context()))
			}
		}
	}
	serves := func(r policyReplica, status int, text string) {
		t.Helper()
		if got, body := r.status(); got != status || !strings.Contains(body, text) {
			t.Errorf("at %v: got %d %q, want %d and %q", now, got, body, status, text)
		}
	}
	published := func(h store.PolicyHost, want bool) {
		t.Helper()
		if got := musttest.Get(s.PublishPolicy(t.Context(), h))(t); got != want {
			t.Errorf("at %v: the id is published: got %v, want %v", now, got, want)
		}
	}
	h := publish(0, "testing")
	h = musttest.Get(s.VerifyPolicyHost(t.Context(), h.Label, true))(t)
	synced(first, second)
	serves(first, http.StatusOK, "mode: testing")
	serves(second, http.StatusOK, "mode: testing")
	published(h, true)

	// The second replica does not reach the database any more, and serves the old policy.
	h = publish(1, "none")
	synced(first)
	serves(first, http.StatusOK, "mode: none")
	serves(second, http.StatusOK, "mode: testing")
	published(h, false)
	now = now.Add(store.PolicyLease - time.Second)
	synced(first)
	serves(second, http.StatusOK, "mode: testing")
	published(h, false)
	now = now.Add(time.Second)
	synced(first)
	serves(second, http.StatusServiceUnavailable, "may be an old one")
	published(h, false) // its clock may be behind
	now = now.Add(30 * time.Second)
	synced(first)
	published(h, true)
	serves(second, http.StatusServiceUnavailable, "may be an old one")
	synced(second)
	serves(second, http.StatusOK, "mode: none")
}
