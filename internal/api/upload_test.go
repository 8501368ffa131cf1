package api_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// firstDay is a day on which reports begin.
const firstDay = 20000

// TestUploadReturnsTheResultOfEachReport sends one thing after the other to a team
// that has example.com alone.
func TestUploadReturnsTheResultOfEachReport(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com")
		first := aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 5}, row{"example.com", "reject", "fail", 2})
		second := aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 6})
		archive := packtest.Zip("a.xml", string(aggregateXML("2", "example.com", firstDay)), "note.txt", "Nothing to see here.")
		for _, tt := range []struct {
			name   string
			body   []byte
			status int
			want   string // kind, status, domain, records, messages or sessions of each item
			sum    string
		}{
			{"a new report", first, 201, "aggregate stored example.com 2 7", `{"total":7,"compliant":5,"non_compliant":2}`},
			{"the same in gzip", packtest.Gzip(first), 200, "aggregate duplicate example.com 2 7", `{"total":7,"compliant":5,"non_compliant":2}`},
			{"another version", second, 201, "aggregate replaced example.com 1 6", `{"total":6,"compliant":6,"non_compliant":0}`},
			{"the first version again", first, 200, "aggregate duplicate example.com 2 7", `{"total":6,"compliant":6,"non_compliant":0}`},
			{
				"about a domain that the team does not have", aggregateXML("3", "example.net", firstDay, row{"example.net", "none", "pass", 1}),
				201, "aggregate unclaimed example.net 1 1", `{"total":6,"compliant":6,"non_compliant":0}`,
			},
			{"an archive with something else in it", archive, 201, "aggregate stored example.com 0 0; null rejected null 0 0", ""},
			{"the same again", archive, 200, "aggregate duplicate example.com 0 0; null rejected null 0 0", ""},
			{"a TLS report", tlsJSON("4", "example.com"), 201, "tls stored example.com 1 8", ""},
			{"a text", []byte("hello"), 422, "null rejected null 0 0", ""},
			{"a report that is cut off before it says anything", first[:200], 422, "aggregate rejected null 0 0", ""},
		} {
			answer := s.upload(tt.body)
			body := read[receipts](t, answer, tt.status)
			var items []string
			for _, item := range body.Items {
				items = append(items, strings.Join([]string{orNull(item.Kind), item.Status, orNull(item.Domain), itoa(item.Records), itoa(item.Messages + item.Sessions)}, " "))
				if rejected := item.Status == "rejected"; rejected != (item.Reason != nil) || rejected == (item.ID != nil) {
					t.Errorf("%s: got %s, want an id for what is kept and a reason for what is not", tt.name, answer.body)
				}
			}
			if got := strings.Join(items, "; "); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
			if (body.Message != "") != (tt.status == 422) {
				t.Errorf("%s: got the message %q with status %d", tt.name, body.Message, tt.status)
			}
			if tt.sum != "" {
				if got := strings.TrimSpace(string(s.get("/reports").body)); got != tt.sum {
					t.Errorf("%s: the counters are %s, want %s", tt.name, got, tt.sum)
				}
			}
		}
	})
}

func TestUploadRejects(t *testing.T) {
	t.Parallel()
	opened := storetest.SQLite(t).Open(t, store.Options{})
	report := aggregateXML("1", "example.com", firstDay)
	large := bytes.Repeat([]byte("x"), maxUpload+1)
	gone := func(o *options) {
		o.Acceptor.Limits.Containers.Folder = filepath.Join(t.TempDir(), "gone")
	}
	for _, tt := range []struct {
		name    string
		edit    func(*options)
		body    io.Reader
		header  map[string]string
		want    int
		message string
	}{
		{name: "a content encoding", body: bytes.NewReader(report), header: map[string]string{"Content-Encoding": "gzip"}, want: 415, message: "Content-Encoding"},
		{name: "a content encoding, and too large", body: bytes.NewReader(large), header: map[string]string{"Content-Encoding": "br"}, want: 415},
		{name: "too large, as it says", body: bytes.NewReader(large), want: 413, message: "4 MiB"},
		{name: "too large, without saying so", body: io.MultiReader(bytes.NewReader(large)), want: 413, message: "4 MiB"},
		{name: "as large as may be", body: bytes.NewReader(large[1:]), want: 422},
		{name: "nothing", body: http.NoBody, want: 400, message: "empty"},
		{name: "nothing, without saying so", body: io.MultiReader(), want: 400, message: "empty"},
		{name: "a body that breaks off", body: io.MultiReader(bytes.NewReader(report), iotest.ErrReader(errors.New("broken"))), want: 400, message: "incomplete"},
		{name: "no room on the disk", edit: gone, body: bytes.NewReader(large[1:]), want: 503, message: "disk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var edits []func(*options)
			if tt.edit != nil {
				edits = append(edits, tt.edit)
			}
			s := newService(t, opened, edits...)
			r := s.request(http.MethodPost, "/reports", tt.body)
			for name, value := range tt.header {
				r.Header.Set(name, value)
			}
			got := s.send(r)
			if message := read[receipts](t, got, tt.want).Message; !strings.Contains(message, tt.message) {
				t.Errorf("got %q, want it to say %q", message, tt.message)
			}
		})
	}
}

// TestUploadedMailIsVerified checks that the authentication result of a mail is kept with its
// reports.
func TestUploadedMailIsVerified(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t).Open(t, store.Options{})
	s := newService(t, db, func(o *options) {
		o.Service = useCases(db, usecase.Options{Acceptor: o.Acceptor, Verifier: genuine{}})
	})
	s.add("example.com")
	mail := "From: dmarc@receiver.example\r\nSubject: report\r\nMIME-Version: 1.0\r\nContent-Type: text/xml\r\n\r\n" +
		string(aggregateXML("1", "example.com", firstDay))
	id := s.stored([]byte(mail))
	type report struct {
		Genuine        string
		Authentication struct{ Genuine, From, DKIM, Reason string }
	}
	got := read[report](t, s.get("/insights/reports/"+id), http.StatusOK)
	if want := itoa(len(mail)) + " bytes were signed."; got.Genuine != "yes" || got.Authentication.From != "receiver.example" || got.Authentication.Reason != want {
		t.Errorf("got %+v, want the authentication result %q", got, want)
	}
}

// TestUploadOutlastsTheServersClocks sends to a server whose request timeout has passed when
// it has read the header.
func TestUploadOutlastsTheServersClocks(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.add("example.com")
	server := httptest.NewUnstartedServer(s.api)
	server.Config.ReadHeaderTimeout = time.Minute
	server.Config.ReadTimeout = time.Nanosecond
	server.Config.WriteTimeout = time.Nanosecond
	server.Start()
	defer server.Close()
	rows := make([]row, 2000)
	for i := range rows {
		rows[i] = row{"example.com", "none", "pass", 1}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/api/reports",
		bytes.NewReader(aggregateXML("1", "example.com", firstDay, rows...)))
	musttest.Do(t, err)
	r.Header.Set("Authorization", "Bearer x")
	response, err := server.Client().Do(r)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		t.Errorf("got status %d, want 201", response.StatusCode)
	}
}

// TestUploadsAreReadFewAtATime counts concurrent reads; each waits for three others.
func TestUploadsAreReadFewAtATime(t *testing.T) {
	t.Parallel()
	const atOnce, rounds = 4, 3
	var mu sync.Mutex
	var reading, most, arrived int
	together := make([]chan struct{}, rounds)
	for i := range together {
		together[i] = make(chan struct{})
	}
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}), func(o *options) {
		o.Acceptor.Lanes = intake.NewLanes(atOnce) // a team may use half of the light lane
		encode := o.Acceptor.Encode
		o.Acceptor.Encode = func(detail dmarcd.Detail) string {
			mu.Lock()
			reading++
			most = max(most, reading)
			round := together[arrived/atOnce]
			if arrived++; arrived%atOnce == 0 {
				close(round)
			}
			mu.Unlock()
			<-round
			mu.Lock()
			reading--
			mu.Unlock()
			return encode(detail)
		}
	})
	s.add("example.com")
	var uploads sync.WaitGroup
	for i := range atOnce * rounds {
		uploads.Go(func() {
			if got := s.upload(aggregateXML(itoa(i), "example.com", firstDay)); got.status != http.StatusCreated {
				t.Errorf("got status %d, want 201: %s", got.status, got.body)
			}
		})
	}
	uploads.Wait()
	if most > atOnce {
		t.Errorf("got %d readings at once, want at most %d", most, atOnce)
	}
}
