package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// exportedLine is what the tests read of a line.
type exportedLine struct {
	ID     string
	Domain string
	Count  int64
	State  string `json:"report_state"`
}

// exportedLines decodes a stream of records.
func exportedLines(t *testing.T, body []byte) []exportedLine {
	t.Helper()
	lines := []exportedLine{}
	scanner := bufio.NewScanner(bytes.NewReader(body))
	for scanner.Scan() {
		var line exportedLine
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, scanner.Bytes())
		}
		lines = append(lines, line)
	}
	return lines
}

// later sets the clock of the service an hour ahead, so that reports are settled.
func later(s *store.Store) func(*options) {
	return func(o *options) {
		o.Service = useCases(s, usecase.Options{Acceptor: o.Acceptor, Now: func() time.Time { return time.Now().Add(time.Hour) }})
	}
}

func TestRecordsAreStreamed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		opened := db.Open(t, store.Options{})
		s := newService(t, opened, later(opened))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("a", "example.com", firstDay, row{"example.com", "none", "pass", 1}, row{"example.org", "none", "fail", 2}))
		s.stored(aggregateXML("b", "unknown.example", firstDay+1, row{"example.org", "none", "pass", 4}, row{"unknown.example", "none", "pass", 8}))
		read := func(query string) []exportedLine {
			t.Helper()
			got := s.get("/insights/records" + query)
			if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/x-ndjson" {
				t.Fatalf("%s: got status %d and %v, want 200 and NDJSON: %s", query, got.status, got.header, got.body)
			}
			return exportedLines(t, got.body)
		}
		for _, tt := range []struct {
			query string
			want  []int64
		}{
			{"", []int64{1, 2, 4}},
			{"?all=false", []int64{1, 2, 4}},
			{"?all=true", []int64{1, 2, 4, 8}},
			{"?domain=EXAMPLE.org", []int64{2, 4}},
			{"?from=2024-10-05", []int64{4}},
			{"?to=2024-10-04", []int64{1, 2}},
		} {
			lines := read(tt.query)
			var counts []int64
			for _, line := range lines {
				counts = append(counts, line.Count)
			}
			if diff := cmp.Diff(tt.want, counts); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.query, diff)
			}
			for i, line := range lines {
				join := "?"
				if strings.Contains(tt.query, "?") {
					join = tt.query + "&"
				}
				if diff := cmp.Diff(lines[i+1:], read(join+"after="+line.ID)); diff != "" {
					t.Errorf("%s, resumed after %s (-want +got):\n%s", tt.query, line.ID, diff)
				}
			}
		}
		for _, query := range []string{"all=1", "after=", "after=x", "after=rep_1.0", "after=rep_1.-1.0", "after=rep_1.0.00", "domain=-", "from=x", "from=2024-10-05&to=2024-10-04", "limit=1", "after=%zz"} {
			if got := s.get("/insights/records?" + query); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422: %s", query, got.status, got.body)
			}
		}
		if got := s.get("/insights/records?domain=other.example"); got.status != http.StatusNotFound {
			t.Errorf("got status %d, want 404", got.status)
		}
		if got := s.send(s.request(http.MethodHead, "/insights/records", nil)); got.status != http.StatusOK || len(got.body) > 0 {
			t.Errorf("HEAD: got status %d and %q, want 200 and no body", got.status, got.body)
		}
	})
}

// TestUnsettledRecordsFollowLater checks that a report that was just received is not streamed:
// one with a lower id may still become visible.
func TestUnsettledRecordsFollowLater(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	clock := time.Now().Add(-time.Hour)
	opened := storetest.SQLite(t).Open(t, store.Options{})
	s := newService(t, opened, func(o *options) {
		o.Service = useCases(opened, usecase.Options{Acceptor: o.Acceptor, Now: func() time.Time { return clock }})
	})
	s.add("example.com")
	s.stored(aggregateXML("a", "example.com", firstDay, row{"example.com", "none", "pass", 1}))
	if lines := exportedLines(t, s.get("/insights/records").body); len(lines) != 0 {
		t.Errorf("got %v, want nothing yet", lines)
	}
	clock = clock.Add(2 * time.Hour)
	if lines := exportedLines(t, s.get("/insights/records").body); len(lines) != 1 {
		t.Errorf("got %v, want the record", lines)
	}
}

// cutOff is a client that is cut off after some bytes.
type cutOff struct {
	*httptest.ResponseRecorder

	left int
}

func (b *cutOff) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseRecorder.Write(p[:b.left]) // never fails
		b.left = 0
		return 0, errors.New("the client has left")
	}
	b.left -= len(p)
	return b.ResponseRecorder.Write(p)
}

// TestStreamIsResumedAfterACut breaks the connection again and again, and continues after the
// last whole line each time.
func TestStreamIsResumedAfterACut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	opened := storetest.SQLite(t).Open(t, store.Options{})
	s := newService(t, opened, later(opened))
	s.add("example.com")
	rows := make([]row, 2500)
	for i := range rows {
		rows[i] = row{"example.com", "none", "pass", i + 1}
	}
	s.stored(aggregateXML("a", "example.com", firstDay, rows...))
	var got []exportedLine
	path := "/insights/records"
	for cuts, whole := 0, false; !whole; cuts++ {
		if cuts > 100 {
			t.Fatal("the stream does not end")
		}
		r := s.request(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer x")
		w := &cutOff{httptest.NewRecorder(), 300_000}
		func() {
			defer func() {
				if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
					panic(p)
				}
			}()
			s.api.ServeHTTP(w, r)
			whole = true
		}()
		body := w.Body.Bytes()
		lines := exportedLines(t, body[:bytes.LastIndexByte(body, '\n')+1])
		got = append(got, lines...)
		path = "/insights/records?after=" + got[len(got)-1].ID
	}
	seen := make(map[string]bool)
	var sum int64
	for _, line := range got {
		if seen[line.ID] {
			t.Fatalf("record %s came twice", line.ID)
		}
		seen[line.ID] = true
		sum += line.Count
	}
	if want := int64(2500 * 2501 / 2); len(got) != 2500 || sum != want {
		t.Errorf("got %d records with %d messages, want 2500 with %d", len(got), sum, want)
	}
}
