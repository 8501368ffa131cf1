package adversary_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestDeletionUnderLoad has clients of a team add, delete, verify, change, fill and read the same few
// domains at once. No request fails, nothing panics, and all counters add up in the end.
func TestDeletionUnderLoad(t *testing.T) {
	onEach(t, func(t *testing.T, a *arena) {
		names := []string{"one.evil.test", "two.evil.test", "sub.one.evil.test"}
		zone := ""
		for i, name := range names {
			zone += fmt.Sprintf("_dmarc.%s. 0 TXT \"v=DMARC1; p=none; rua=mailto:x%d@evil.test\"\n", name, i)
		}
		a.dns.setZone(t, zone)
		var mu sync.Mutex
		problems := map[string]int{}
		const clients = 8
		a.watch("deletion under load", func() {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			var all sync.WaitGroup
			for client := range clients {
				all.Go(func() {
					random := rand.New(rand.NewPCG(uint64(client), 1))
					for n := 0; ctx.Err() == nil; n++ {
						name := names[random.IntN(len(names))]
						step := confused(random, name, fmt.Sprintf("%d-%d", client, n))
						got, err := a.mallory.try(ctx, step.method, step.path, step.media, []byte(step.body))
						if err != nil || ctx.Err() != nil {
							continue
						}
						busy := got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != ""
						if got.status >= 500 && !busy {
							mu.Lock()
							problems[fmt.Sprintf("%s %s: %d after %v", step.method, step.path, got.status, got.took.Round(time.Second))]++
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
		})
		for problem, times := range problems {
			t.Errorf("%s, %d times", problem, times)
		}
		if strings.Contains(a.d.Log(), "panic") || strings.Contains(a.d.Log(), `"level":"ERROR"`) {
			t.Errorf("the log has errors: %.2000s", errorsIn(a.d.Log()))
		}
		a.d.Stop()
		if r := a.in.Run(t, "", "doctor"); strings.Contains(r.Stdout, "not the sum") || strings.Contains(r.Stdout, "add up") {
			t.Errorf("doctor: %s", r.Stdout)
		}
	}, "DMARCD_RATE_LIMIT=0")
}

// errorsIn returns the lines of a log that are errors.
func errorsIn(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "panic") || strings.Contains(line, `"level":"ERROR"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// request is one of a confused client.
type confusedRequest struct{ method, path, media, body string }

// confused returns a request about a domain.
func confused(random *rand.Rand, name, id string) confusedRequest {
	report := about(name, id, 3, 2).xml()
	all := []confusedRequest{
		{http.MethodPost, "/domains", "application/json", fmt.Sprintf(`{"domain": %q}`, name)},
		{http.MethodPost, "/domains", "application/json", fmt.Sprintf(`{"domain": %q}`, name)},
		{http.MethodDelete, "/domains/" + name, "", ""},
		{http.MethodPost, "/domains/" + name + "/verify", "", ""},
		{http.MethodPost, "/reports", "application/xml", report},
		{http.MethodPost, "/reports", "application/xml", report},
		{http.MethodPost, "/insights/reports/exclude", "application/json", `{"reporter": null, "from": "2020-01-01", "to": "2030-01-01", "counted": ` + fmt.Sprint(random.IntN(2) == 0) + `}`},
		{http.MethodGet, "/insights/records?domain=" + name, "", ""},
		{http.MethodGet, "/insights/senders?domain=" + name, "", ""},
		{http.MethodGet, "/insights/advice", "", ""},
		{http.MethodGet, "/insights/simulate?p=reject&domain=" + name, "", ""},
		{http.MethodGet, "/search?q=" + name, "", ""},
		{http.MethodGet, "/domains/" + name + "/checks", "", ""},
		{http.MethodGet, "/domains/" + name + "/setup", "", ""},
		{http.MethodGet, "/events?limit=50", "", ""},
		{http.MethodPut, "/domains/" + name + "/tags", "application/json", `{"tags": ["a", "b` + id + `"]}`},
		{http.MethodPut, "/domains/" + name + "/senders/AS64496", "application/json", `{"class": "yours"}`},
		{http.MethodPut, "/senders/own-" + fmt.Sprint(random.IntN(3)), "application/json", `{"name": "Own", "class": "yours", "networks": ["192.0.2.0/24"]}`},
		{http.MethodGet, "/insights/daily?domain=" + name, "", ""},
		{http.MethodGet, "/reports/" + name, "", ""},
	}
	return all[random.IntN(len(all))]
}
