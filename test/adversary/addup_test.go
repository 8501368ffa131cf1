package adversary_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// TestSendersAddUp reads the senders of more addresses than are listed one by one.
// However many there are, the answer is bounded and adds up. The bound is the daemon's, not
// that of the database: PostgreSQL is tested with the size of the finding.
func TestSendersAddUp(t *testing.T) {
	uploads, records, on := 2, 17_000, onSQLite
	if soak {
		records, on = 1_000_000, onEach
	}
	on(t, func(t *testing.T, a *arena) {
		for i := range uploads {
			a.mallory.upload(distinct(t, "mallory.test", fmt.Sprint("planted ", i), i*records, records))
		}
		for _, by := range []string{"sender", "address", "reporter"} {
			sum, rows, pages := int64(0), 0, 0
			for after, more := "", true; more; pages++ {
				page := a.mallory.senders("/insights/senders?limit=1000&by=" + by + after)
				for _, item := range page.Items {
					sum += item.Total
				}
				rows += len(page.Items)
				if more = page.Next != nil; more {
					after = "&after=" + url.QueryEscape(*page.Next)
				}
			}
			if sum != int64(uploads*records) {
				t.Errorf("senders by %s: got %d messages in %d rows want %d", by, sum, rows, uploads*records)
			}
			if rows >= uploads*records {
				t.Errorf("senders by %s: got %d rows want fewer than the addresses", by, rows)
			}
			t.Logf("senders by %s: %d messages in %d rows on %d pages", by, sum, rows, pages)
		}
		a.d.Stop()
	}, "DMARCD_RATE_LIMIT=0")
}

// sendersPage is a page of senders.
type sendersPage struct {
	Items []counts `json:"items"`
	Next  *string  `json:"next"`
}

// senders reads a page of senders, and retries when it has to wait.
func (v *tenant) senders(path string) (page sendersPage) {
	v.t.Helper()
	eventually(v.t, patience, "GET "+path, func() bool {
		got := v.send(http.MethodGet, path, "", nil)
		switch {
		case got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != "":
			return false
		case got.status != http.StatusOK:
			v.t.Fatalf("%s: GET %s: got %v want 200 or 503", v.name, path, got)
		}
		page = sendersPage{}
		if err := json.Unmarshal(got.body, &page); err != nil {
			v.t.Fatalf("%s: GET %s: %v in %s", v.name, path, err, got.body)
		}
		return true
	})
	return page
}
