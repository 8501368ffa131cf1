package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// forwarding is a client whose proxy reports another address.
type forwarding struct{ address string }

func (f forwarding) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", "192.0.2.66, "+f.address) // the first is what the client made up
	r.Header.Set("X-Forwarded-Proto", "https")
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
}

// TestBehindAProxy checks that every use of a client's address sees the
// client's where the proxy is believed, and the proxy's where it is not.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		setting string
		address string // that the client is seen with
		shared  bool   // with all others behind the proxy
	}{
		{"believed", "DMARCD_TRUSTED_PROXIES=127.0.0.1", "2001:db8::7", false},
		{"not believed", "DMARCD_TRUSTED_PROXIES=", "127.0.0.1", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			d := start(t, storetest.SQLite(t), row.setting, "DMARCD_RATE_LIMIT=0.001")
			origin := strings.TrimSuffix(d.url, "/api")
			client := browser(t)
			client.Transport = forwarding{"2001:db8::7"}
			neighbour := &http.Client{Transport: forwarding{"198.51.100.8"}}

			response, _ := visit(t, client, origin+invitationForm.FindString(d.out), url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
			if cookie := response.header.Get("Set-Cookie"); strings.Contains(cookie, "Secure") {
				t.Errorf("got the cookie %q, want the base URL alone to decide who may send it", cookie)
			}
			visit(t, client, origin+"/app/domains/new", url.Values{"domain": {"by-page.example"}})
			if status := ask(t, client, http.MethodPost, d.url+"/domains", tokenForm.FindString(d.out), `{"domain": "by-token.example"}`); status != http.StatusCreated {
				t.Fatalf("got %d, want 201", status)
			}
			_, page := visit(t, client, origin+"/app/settings/audit", nil)
			for _, domain := range []string{"by-page.example", "by-token.example"} {
				if line := lineWith(page, domain); !strings.Contains(line, row.address) || strings.Contains(line, "192.0.2.66") {
					t.Errorf("the audit log: got %q, want it with %s", line, row.address)
				}
			}

			for _, try := range []struct{ name, path, token string }{
				{"wrong tokens", "/api/domains", "wrong"},
				{"TLS reports", "/tlsrpt/unknown", ""},
			} {
				first := ask(t, client, http.MethodGet, origin+try.path, try.token, "")
				again := ask(t, client, http.MethodGet, origin+try.path, try.token, "")
				other := ask(t, neighbour, http.MethodGet, origin+try.path, try.token, "")
				if want := map[bool]int{true: again, false: first}[row.shared]; again != http.StatusTooManyRequests || other != want {
					t.Errorf("%s: got %d, then %d, and %d from another client, want 429 for the second and %d for the other", try.name, first, again, other, want)
				}
			}
			if line := lineWith(d.log.String(), `"route":"POST /domains"`); !strings.Contains(line, `"remote":"`+row.address+`"`) {
				t.Errorf("the access log: got %q, want it with %s", line, row.address)
			}
		})
	}
}

// ask sends a request with a token and returns the status.
func ask(t *testing.T, client *http.Client, method, address, token, body string) int {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body)))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	musttest.Do(t, err)
	_ = response.Body.Close() // only the head is of interest
	return response.StatusCode
}

// lineWith returns the first line of a text that holds the words.
func lineWith(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return line
		}
	}
	return ""
}
