package app_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

var invitationForm = regexp.MustCompile(`/app/invitation/[A-Z2-7]{26}`)

// browser keeps cookies, and follows no redirect.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar := musttest.Get(cookiejar.New(nil))(t)
	return &http.Client{
		Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answered is the head of an answer.
type answered struct {
	status int
	header http.Header
}

// visit asks for a page, or sends a form where there is one.
func visit(t *testing.T, client *http.Client, address string, form url.Values) (answered, string) {
	t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	request := musttest.Get(http.NewRequestWithContext(t.Context(), method, address, body))(t)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	text := musttest.Get(io.ReadAll(response.Body))(t)
	return answered{response.StatusCode, response.Header}, string(text)
}

// TestWebPage follows the link of the first start to the first page and to all
// others that the menu leads to.
func TestWebPage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		d := start(t, db, "DMARCD_REPORT_DOMAIN=reports.example")
		origin := strings.TrimSuffix(d.url, "/api")
		client := browser(t)
		for path, want := range map[string]string{"/": "/app/", "/app": "/app/", "/app/": "/app/sign-in"} {
			if response, _ := visit(t, client, origin+path, nil); response.header.Get("Location") != want {
				t.Errorf("%s: got %d to %q, want %q", path, response.status, response.header.Get("Location"), want)
			}
		}
		invitation := origin + invitationForm.FindString(d.out)
		response, page := visit(t, client, invitation, nil)
		if response.status != http.StatusOK || !strings.Contains(page, `minlength="12"`) {
			t.Fatalf("invitation: got %d and %s, want a form that says how long a password is", response.status, page)
		}
		response, page = visit(t, client, invitation, url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
		if response.status != http.StatusSeeOther {
			t.Fatalf("got %d and %s, want to be led to the first page", response.status, page)
		}
		cookie := response.header.Get("Set-Cookie")
		if !strings.HasSuffix(cookie, "; Path=/app/; HttpOnly; SameSite=Lax") {
			t.Errorf("got the cookie %q, want it for the pages alone and for no script", cookie)
		}
		response, _ = visit(t, client, origin+"/app/domains/new", url.Values{"domain": {"example.com"}})
		if want := "/app/domains/example.com/setup?done=domain-added"; response.header.Get("Location") != want {
			t.Errorf("got %d to %q, want %q", response.status, response.header.Get("Location"), want)
		}
		for _, path := range []string{
			"/", "/domains/example.com", "/domains/example.com/senders", "/domains/example.com/dns", "/domains/example.com/changes",
			"/domains/example.com/policy", "/domains/example.com/print", "/domains/example.com/setup", "/domains/example.com/setup/steps", "/domains/example.com/reports",
			"/domains/example.com/settings", "/senders", "/activity", "/activity/dns", "/activity/everything", "/print", "/reports", "/reports/upload", "/reports/rejected", "/tools", "/tools/check", "/tools/mail", "/tools/dmarc", "/tools/spf", "/tools/mta-sts", "/tools/tls-rpt", "/tools/bimi",
			"/account", "/settings/tokens", "/settings/members", "/settings/mailboxes", "/settings/notifications", "/settings/retention", "/settings/audit",
			"/installation/teams", "/installation/users",
		} {
			if response, page := visit(t, client, origin+"/app"+path, nil); response.status != http.StatusOK {
				t.Errorf("%s: got %d and %s, want 200", path, response.status, page)
			}
		}
		if status, _ := get(t, d.url+"/domains", tokenForm.FindString(d.out)); status != http.StatusOK {
			t.Errorf("the API: got %d, want 200", status)
		}
	})
}

// TestWebPageBesideAnAPIAtTheRoot has both at the same host without a path between.
func TestWebPageBesideAnAPIAtTheRoot(t *testing.T) {
	t.Parallel()
	d := start(t, storetest.SQLite(t), "DMARCD_BASE_URL=https://dmarc.example")
	origin := "http://" + d.listen
	client := browser(t)
	for path, want := range map[string]int{
		"/": http.StatusFound, "/app": http.StatusFound, "/app/sign-in": http.StatusOK,
		"/domains": http.StatusUnauthorized, "/apples": http.StatusUnauthorized,
	} {
		if response, _ := visit(t, client, origin+path, nil); response.status != want {
			t.Errorf("%s: got %d, want %d", path, response.status, want)
		}
	}
	invitation := origin + invitationForm.FindString(d.out)
	response, _ := visit(t, client, invitation, url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
	if cookie := response.header.Get("Set-Cookie"); !strings.Contains(cookie, "; Secure;") {
		t.Errorf("got the cookie %q, want it by https alone", cookie)
	}
}

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

// TestTokenNetworks uses tokens that are limited to networks: what counts is the address that a trusted proxy reports, and
// nothing that the client made up.
func TestTokenNetworks(t *testing.T) {
	t.Parallel()
	for proxies, address := range map[string]string{"127.0.0.1": "2001:db8::7", "": "127.0.0.1"} {
		d := start(t, storetest.SQLite(t), "DMARCD_TRUSTED_PROXIES="+proxies)
		origin := strings.TrimSuffix(d.url, "/api")
		client := browser(t)
		client.Transport = forwarding{"2001:db8::7"}
		visit(t, client, origin+invitationForm.FindString(d.out), url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
		for _, network := range []string{"", "2001:db8::/64", "127.0.0.1", "192.0.2.66", "198.51.100.0/24 192.0.2.0/24"} {
			_, page := visit(t, client, origin+"/app/settings/tokens", url.Values{"name": {"x"}, "scope": {"read"}, "networks": {network}})
			want := http.StatusForbidden
			if network == "" || strings.Contains(network, address[:8]) {
				want = http.StatusOK
			}
			if status := ask(t, client, http.MethodGet, d.url+"/domains", tokenForm.FindString(page), ""); status != want {
				t.Errorf("behind %q, a token for %q: got %d, want %d", proxies, network, status, want)
			}
		}
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
