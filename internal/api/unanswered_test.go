package api_test

import (
	"net/http"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestLatestCheckWithoutDNS reads the check of a domain before the first check, and after DNS
// failed.
func TestLatestCheckWithoutDNS(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		zone := dnstest.New("")
		for _, name := range []string{"_dmarc.example.com", "_dmarc.com", "example.com"} {
			zone.Fail(name)
		}
		client := newService(t, s, func(o *options) {
			o.Service = useCases(s, usecase.Options{Checker: newChecker(zone), Acceptor: o.Acceptor})
		})
		client.add("example.com")
		if got := client.get("/domains/example.com/checks/latest"); got.header.Get("Dmarcd-Error") != "not_checked_yet" {
			t.Errorf("before a check: got %d: %s", got.status, got.body)
		}
		if got := client.sendJSON(http.MethodPost, "/domains/example.com/verify", nil); got.header.Get("Dmarcd-Check") != "inconclusive" {
			t.Fatalf("verified: got %d %v: %s", got.status, got.header, got.body)
		}
		got := read[struct {
			ID         *string
			DMARC, SPF struct{ Status, Reason string }
		}](t, client.get("/domains/example.com/checks/latest"), http.StatusOK)
		if got.ID != nil || got.DMARC.Status != "inconclusive" || got.SPF.Status != "inconclusive" || got.DMARC.Reason == "" {
			t.Errorf("after a check: got %+v, want it inconclusive", got)
		}
	})
}
