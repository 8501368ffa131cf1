package adversary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// patience is how long a client of the tests waits where the time is not the
// question.
const patience = 15 * time.Minute

// tenant is a client of a team: its API with a token, its pages with a user.
type tenant struct {
	t      *testing.T
	name   string
	origin string // scheme, host and port
	token  string
	email  string
	client *http.Client
}

// answer is what a request came to.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

func (a answer) String() string { return fmt.Sprintf("%d %.300s", a.status, a.body) }

// newClient returns a client that stores cookies and follows no redirect. It
// connects from an address of loopback, or from any with "".
func newClient(t testing.TB, from string) *http.Client {
	t.Helper()
	jar := musttest.Get(cookiejar.New(nil))(t)
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{LocalAddr: localAddress(from)}).DialContext,
		TLSClientConfig: anyCertificate(), ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Jar: jar, Transport: transport, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// localAddress is what a connection begins at.
func localAddress(from string) net.Addr {
	if from == "" {
		return nil
	}
	return &net.TCPAddr{IP: net.ParseIP(from)}
}

// try sends a request. Where the path begins with /app it goes to the pages,
// with the session of the user, otherwise to the API or to /tlsrpt.
func (v *tenant) try(ctx context.Context, method, path, media string, body []byte) (answer, error) {
	api := !strings.HasPrefix(path, "/app/") && !strings.HasPrefix(path, "/tlsrpt/") && path != "/readyz"
	target := v.origin + path
	if api {
		target = v.origin + "/api" + path
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	if api {
		r.Header.Set("Authorization", "Bearer "+v.token)
	} else {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", v.origin)
	}
	began := time.Now()
	response, err := v.client.Do(r)
	if err != nil {
		return answer{took: time.Since(began)}, err
	}
	defer func() { _ = response.Body.Close() }() // it is read to the end
	content, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: content, took: time.Since(began)}, err
}

// send is try for requests that must be answered.
func (v *tenant) send(method, path, media string, body []byte) answer {
	v.t.Helper()
	got, err := v.try(v.t.Context(), method, path, media, body)
	if err != nil {
		v.t.Fatalf("%s: %s %s: %v", v.name, method, path, err)
	}
	return got
}

// get reads something that must be there, as JSON.
func (v *tenant) get(path string, into any) {
	v.t.Helper()
	got := v.send(http.MethodGet, path, "", nil)
	if got.status != http.StatusOK {
		v.t.Fatalf("%s: GET %s: got %v want 200", v.name, path, got)
	}
	if err := json.Unmarshal(got.body, into); err != nil {
		v.t.Fatalf("%s: GET %s: %v in %s", v.name, path, err, got.body)
	}
}

// post sends a form of a page.
func (v *tenant) post(path string, form url.Values) answer {
	v.t.Helper()
	return v.send(http.MethodPost, path, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

// add adds a domain.
func (v *tenant) add(domain string) {
	v.t.Helper()
	body := fmt.Appendf(nil, `{"domain": %q}`, domain)
	if got := v.send(http.MethodPost, "/domains", "application/json", body); got.status != http.StatusCreated {
		v.t.Fatalf("%s: add %s: got %v want 201", v.name, domain, got)
	}
}

// receipt is what an upload says about one item.
type receipt struct {
	Kind   *string `json:"kind"`
	Status string  `json:"status"`
	Reason *string `json:"reason"`
}

// upload uploads something that must be read, and returns the statuses.
func (v *tenant) upload(content []byte) []receipt {
	v.t.Helper()
	got := v.send(http.MethodPost, "/reports", "application/octet-stream", content)
	if got.status != http.StatusCreated && got.status != http.StatusOK {
		v.t.Fatalf("%s: upload: got %v want 201 or 200", v.name, got)
	}
	var list struct{ Items []receipt }
	if err := json.Unmarshal(got.body, &list); err != nil {
		v.t.Fatalf("%v in %s", err, got.body)
	}
	return list.Items
}

// counts is the summary of a team or domain.
type counts struct {
	Total        int64 `json:"total"`
	Compliant    int64 `json:"compliant"`
	NonCompliant int64 `json:"non_compliant"`
}

// counted returns the summary of a domain, or of the team with "".
func (v *tenant) counted(domain string) counts {
	v.t.Helper()
	path := "/reports"
	if domain != "" {
		path += "/" + domain
	}
	var sum counts
	v.get(path, &sum)
	if sum.Total != sum.Compliant+sum.NonCompliant {
		v.t.Errorf("%s: GET %s: got %+v want total = compliant + non_compliant", v.name, path, sum)
	}
	return sum
}

// list reads all pages of a list.
func list[T any](v *tenant, path string) []T {
	v.t.Helper()
	var all []T
	after := ""
	for {
		joined := path
		if after != "" {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			joined += separator + "after=" + url.QueryEscape(after)
		}
		var page struct {
			Items []T     `json:"items"`
			Next  *string `json:"next"`
		}
		v.get(joined, &page)
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		after = *page.Next
	}
}

// listedReport is a report in the list.
type listedReport struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind"`
	Org        *string `json:"org"`
	ReportID   *string `json:"report_id"`
	Messages   int64   `json:"messages"`
	Genuine    string  `json:"genuine"`
	Counted    bool    `json:"counted"`
	HeldReason *string `json:"held_reason"`
}

// reports lists the reports of a team.
func (v *tenant) reports(query string) []listedReport {
	v.t.Helper()
	return list[listedReport](v, "/insights/reports"+query)
}
