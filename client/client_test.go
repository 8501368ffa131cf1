package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// answers is a transport that gives these answers one after the other, the last one again.
type answers struct {
	list   []answer
	bodies []string // of the requests
	paths  []string
}

type answer struct {
	status     int // 0: no answer
	retryAfter string
	body       string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(content)
	}
	next := a.list[min(len(a.bodies), len(a.list)-1)]
	a.bodies = append(a.bodies, body)
	a.paths = append(a.paths, r.URL.RequestURI())
	if next.status == 0 {
		return nil, errors.New("connection lost")
	}
	w := httptest.NewRecorder()
	if next.retryAfter != "" {
		w.Header().Set("Retry-After", next.retryAfter)
	}
	w.Header().Set("Dmarcd-Error", "a_code")
	w.WriteHeader(next.status)
	_, _ = w.WriteString(next.body)
	return w.Result(), nil
}

func newClient(list ...answer) (*client.Client, *answers) {
	transport := &answers{list: list}
	c := client.New("http://api.example/api/", "secret")
	c.HTTP = &http.Client{Transport: transport}
	return c, transport
}

func TestRetry(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, c *client.Client) error { return second(c.GetDomain(t.Context(), "a.example")) }
	add := func(t *testing.T, c *client.Client) error { return second(c.AddDomain(t.Context(), "a.example")) }
	remove := func(t *testing.T, c *client.Client) error { return c.DeleteDomain(t.Context(), "a.example") }
	upload := func(t *testing.T, c *client.Client) error {
		return second(c.UploadReport(t.Context(), strings.NewReader("x")))
	}
	ok, limited, lost := answer{status: 200, body: "{}"}, answer{status: 429, retryAfter: "7", body: `{"message": "Slow down."}`}, answer{}
	for _, tt := range []struct {
		name  string
		list  []answer
		call  func(*testing.T, *client.Client) error
		calls int
		waits time.Duration // at least
		fails bool
	}{
		{"no error", []answer{ok}, read, 1, 0, false},
		{"Retry-After", []answer{limited, limited, ok}, read, 3, 14 * time.Second, false},
		{"Retry-After of a POST", []answer{limited, ok}, add, 2, 7 * time.Second, false},
		{"too long", []answer{{status: 503, retryAfter: "61"}, ok}, read, 1, 0, true},
		{"unavailable", []answer{{status: 503}, ok}, read, 2, 250 * time.Millisecond, false},
		{"unavailable to a POST", []answer{{status: 503, retryAfter: "1"}, ok}, add, 1, 0, true},
		{"lost", []answer{lost, ok}, read, 2, 250 * time.Millisecond, false},
		{"lost POST", []answer{lost, ok}, add, 1, 0, true},
		{"lost DELETE", []answer{lost, {status: 404}}, remove, 2, 0, false},
		{"DELETE of nothing", []answer{{status: 404}}, remove, 1, 0, true},
		{"limited upload", []answer{limited, ok}, upload, 1, 0, true},
		{"always limited", []answer{limited}, read, 5, 28 * time.Second, true},
		{"a bug", []answer{{status: 500}}, read, 1, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				c, transport := newClient(tt.list...)
				err := tt.call(t, c)
				if took := time.Since(began); (err != nil) != tt.fails || len(transport.bodies) != tt.calls || took < tt.waits || took > tt.waits+3*time.Second {
					t.Errorf("got %v, %d calls in %v; want an error: %v, %d calls in %v", err, len(transport.bodies), took, tt.fails, tt.calls, tt.waits)
				}
				for _, body := range transport.bodies {
					if body != transport.bodies[0] {
						t.Errorf("got the body %q again, want %q", body, transport.bodies[0])
					}
				}
			})
		})
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	c, _ := newClient(answer{status: 422, body: `{"message": "Wrong.", "code": "invalid_input", "field": "domain",
		"errors": [{"field": "domain", "code": "invalid_input", "message": "Wrong."}]}`})
	_, err := c.AddDomain(t.Context(), "x")
	var answer *client.Error
	if !errors.As(err, &answer) || !errors.Is(err, dmarcd.ErrInvalid) || errors.Is(err, dmarcd.ErrNotFound) || answer.Error() != "Wrong." ||
		answer.Code != "invalid_input" || len(answer.Fields) != 1 || *answer.Fields[0].Field != "domain" {
		t.Errorf("got %+v", err)
	}
}

// TestErrorOfOthers covers a server that is not dmarcd, or a wrong base URL.
func TestErrorOfOthers(t *testing.T) {
	t.Parallel()
	c, _ := newClient(answer{status: 404, body: "<html>"})
	_, err := c.GetMe(t.Context())
	if !errors.Is(err, dmarcd.ErrNotFound) || !strings.Contains(err.Error(), "base URL") {
		t.Errorf("got %v, want an error that explains the base URL", err)
	}
	if _, err := client.New("://", "x").GetMe(t.Context()); err == nil {
		t.Error("got no error for an invalid URL")
	}
}

// TestMissingName covers a name that would change the path of a request.
func TestMissingName(t *testing.T) {
	t.Parallel()
	c, transport := newClient(answer{status: 204})
	for _, name := range []string{"", ".", ".."} {
		if err := c.DeleteDomain(t.Context(), name); !errors.Is(err, dmarcd.ErrInvalid) || len(transport.paths) > 0 {
			t.Errorf("%q: got %v and the requests %v, want an error without one", name, err, transport.paths)
		}
	}
	musttest.Do(t, c.DeleteDomain(t.Context(), "a/b?c"))
	if want := "/api/domains/a%2Fb%3Fc"; transport.paths[0] != want {
		t.Errorf("got the path %s, want %s", transport.paths[0], want)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	c, transport := newClient(
		answer{status: 200, body: `{"items": [{"id": "a"}, {"id": "b"}], "next": "x"}`},
		answer{status: 200, body: `{"items": [{"id": "c"}], "next": null}`},
	)
	var ids string
	for report, err := range c.ListReports(t.Context(), client.ReportFilter{Period: client.Period{From: dmarcd.DayOf(time.Unix(1e9, 0))}, Kind: "tls", Unclaimed: true}) {
		musttest.Do(t, err)
		ids += report.ID
	}
	want := "[/api/insights/reports?from=2001-09-09&kind=tls&unclaimed=true /api/insights/reports?after=x&from=2001-09-09&kind=tls&unclaimed=true]"
	if got := fmt.Sprint(transport.paths); ids != "abc" || got != want {
		t.Errorf("got %s from %s, want abc from %s", ids, got, want)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	c, transport := newClient(
		answer{status: 200, body: `{"items": [{"seq": 5}, {"seq": 7}], "next": null}`},
		answer{status: 200, body: `{"items": [], "next": null}`},
		answer{status: 200, body: `{"items": [{"seq": 9}], "next": null}`},
	)
	for event, err := range c.FollowEvents(t.Context(), 4, client.EventFilter{}) {
		musttest.Do(t, err)
		if event.Seq == 9 {
			break
		}
	}
	if want := "[/api/events?since=4&wait=30 /api/events?since=7&wait=30 /api/events?since=7&wait=30]"; fmt.Sprint(transport.paths) != want {
		t.Errorf("got %s, want %s", transport.paths, want)
	}
}

// TestExportContinues covers answers that end in the middle of a record.
func TestExportContinues(t *testing.T) {
	t.Parallel()
	c, transport := newClient(
		answer{status: 200, body: `{"id": "1"}` + "\n" + `{"id": "2"}` + "\n" + `{"id"`},
		answer{status: 200, body: `{"id": "3"}` + "\n"},
	)
	records := musttest.Get(client.Collect(c.ExportRecords(t.Context(), client.RecordFilter{})))(t)
	if len(records) != 3 || len(transport.paths) != 2 || transport.paths[1] != "/api/insights/records?after=2" {
		t.Errorf("got %d records of %v", len(records), transport.paths)
	}
	if all(c.ExportRecords(t.Context(), client.RecordFilter{After: "x"})) != nil {
		t.Error("got an error, want the rest")
	}
	c, _ = newClient(answer{status: 200, body: `{"id"`})
	if err := all(c.ExportRecords(t.Context(), client.RecordFilter{})); err == nil {
		t.Error("got no error without progress")
	}
}

// TestExportedLines checks that records are passed on as the server sent them, and that an answer of
// another kind is an error at once.
func TestExportedLines(t *testing.T) {
	t.Parallel()
	long := `{"id": "1", "unknown": "` + strings.Repeat("x", 100_000) + `"}`
	c, _ := newClient(answer{status: 200, body: long + "\n" + `{"id": "2"}`})
	var got []string
	for line, err := range c.ExportRecordLines(t.Context(), client.RecordFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	if want := []string{long, `{"id": "2"}`}; !slices.Equal(got, want) {
		t.Errorf("got %.100q, want %.100q", got, want)
	}
	for _, body := range []string{"<html>\n</html>\n", "7\n", `{"id": "1"}` + "\n" + `[]` + "\n", `{"x": 1}` + "\n" + `{"id"`} {
		c, transport := newClient(answer{status: 200, body: body})
		if err := all(c.ExportRecordLines(t.Context(), client.RecordFilter{})); err == nil || !strings.Contains(err.Error(), "NDJSON") || len(transport.paths) != 1 {
			t.Errorf("%q: got %v after %v, want an error after one request", body, err, transport.paths)
		}
	}
}

func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	key := []byte("twenty-four bytes or more")
	secret := "whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb3IgbW9yZQ=="
	now := time.Unix(1_700_000_000, 0)
	standard, plain := `{"type": "domain.changed", "timestamp": "x", "data": {"seq": 7}}`, `{"seq": 7, "kind": "domain.changed", "data": {}}`
	header := func(at time.Time, body string) http.Header {
		h := http.Header{}
		h.Set("Webhook-Id", "id")
		h.Set("Webhook-Timestamp", fmt.Sprint(at.Unix()))
		h.Set("Webhook-Signature", "v1,b3RoZXI= "+wire.Signature("id", at, []byte(body), key))
		return h
	}
	for _, tt := range []struct {
		name, secret, body string
		header             http.Header
		valid              bool
	}{
		{"standard", secret, standard, header(now, standard), true},
		{"json", secret, plain, header(now, plain), true},
		{"early", secret, plain, header(now.Add(4*time.Minute), plain), true},
		{"old", secret, plain, header(now.Add(-6*time.Minute), plain), false},
		{"future", secret, plain, header(now.Add(6*time.Minute), plain), false},
		{"other body", secret, plain, header(now, standard), false},
		{"other secret", "whsec_b3RoZXI=", plain, header(now, plain), false},
		{"no secret", "", plain, header(now, plain), false},
		{"empty secret", "whsec_", plain, header(now, plain), false},
		{"no header", secret, plain, http.Header{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			event, err := client.VerifyWebhook(tt.secret, tt.header, []byte(tt.body), now)
			if (err == nil) != tt.valid || tt.valid && event.Seq != 7 {
				t.Errorf("got %+v, %v; want it valid: %v", event, err, tt.valid)
			}
		})
	}
}
