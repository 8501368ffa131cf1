package adversary_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestLongRecords has a team with many domains whose DMARC records are as long as DNS allows, and
// asks for long lists of them many times at once.
func TestLongRecords(t *testing.T) {
	onSQLite(t, func(t *testing.T, a *arena) {
		const domains, clients = 150, 48
		long := strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 230)
		zone := ""
		for i := range domains {
			zone += fmt.Sprintf("_dmarc.d%d.evil.test. 0 TXT \"v=DMARC1; p=none; x=\"%s\n", i, long)
		}
		a.dns.setZone(t, zone)
		each := func(n int, do func(i int)) {
			var all sync.WaitGroup
			slots := make(chan struct{}, clients)
			for i := range n {
				slots <- struct{}{}
				all.Go(func() {
					do(i)
					<-slots
				})
			}
			all.Wait()
		}
		each(domains, func(i int) { a.mallory.add(fmt.Sprintf("d%d.evil.test", i)) })
		a.watch("long records", func() {
			each(2*clients, func(i int) {
				path := []string{"/domains?limit=1000", "/domains", "/insights/advice?limit=1000", "/events?limit=1000"}[i%4]
				got, err := a.mallory.try(context.WithoutCancel(t.Context()), http.MethodGet, path, "", nil)
				if err != nil || got.status != http.StatusOK && got.status != http.StatusServiceUnavailable {
					t.Errorf("%s: got %d, %v", path, got.status, err)
				}
			})
		})
		a.d.Stop()
	}, "DMARCD_RATE_LIMIT=0")
}
