package api_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestErrorCodes provokes errors of the seven endpoints of the interface and of additions. All have
// the code in the header; only additions also have it in the body.
func TestErrorCodes(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.add("example.com")
	for _, tt := range []struct {
		method, path string
		status       int
		code         string
		inBody       bool
	}{
		{"GET", "/domains/none.example", 404, "domain_not_found", false},
		{"GET", "/reports/none.example", 404, "domain_not_found", false},
		{"GET", "/reports?from=x", 422, "invalid_input", false},
		{"POST", "/domains", 415, "unsupported_media_type", false},
		{"GET", "/none", 404, "no_such_resource", false},
		{"PUT", "/domains", 405, "method_not_allowed", false},
		{"GET", "/domains/none.example/setup", 404, "domain_not_found", true},
		{"GET", "/insights/reports/rep_1", 404, "report_not_found", true},
		{"GET", "/insights/reports?kind=x", 422, "invalid_input", true},
		{"GET", "/insights/reports?limit=1&nope=1", 422, "unknown_parameter", true},
		{"GET", "/insights/rejected/rej_1/original?domain=example.com", 422, "unknown_parameter", true},
		{"GET", "/domains/example.com/setup?x", 422, "unknown_parameter", true},
		{"POST", "/reports?x=1", 422, "unknown_parameter", true},
		{"POST", "/reports", 400, "empty_body", true},
	} {
		got := s.send(s.request(tt.method, tt.path, http.NoBody))
		if got.status != tt.status || got.header.Get("Dmarcd-Error") != tt.code {
			t.Errorf("%s %s: got %d %q, want %d %q", tt.method, tt.path, got.status, got.header.Get("Dmarcd-Error"), tt.status, tt.code)
		}
		var body map[string]any
		if err := json.Unmarshal(got.body, &body); err != nil || body["message"] == nil {
			t.Fatalf("%s %s: got %s, want a message", tt.method, tt.path, got.body)
		}
		if want := map[bool]any{true: tt.code}[tt.inBody]; body["code"] != want || !tt.inBody && len(body) != 1 {
			t.Errorf("%s %s: got %s, want the code %v", tt.method, tt.path, got.body, want)
		}
	}
	for _, path := range []string{"/domains?x=1", "/domains/example.com?x=1", "/reports?x=1", "/reports/example.com?x=1"} {
		if got := s.get(path); got.status != http.StatusOK || got.header.Get("Dmarcd-Error") != "" {
			t.Errorf("%s: got %d, want 200: the interface ignores parameters that it does not know", path, got.status)
		}
	}
}

// form returns a form with files, some named, and its media type.
func form(t *testing.T, files ...[]byte) (body []byte, media string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	musttest.Do(t, w.WriteField("comment", "not a report"))
	for i, file := range files {
		part := musttest.Get(w.CreateFormFile("file", "report "+strconv.Itoa(i)+".xml"))(t)
		musttest.Get(part.Write(file))(t)
	}
	musttest.Do(t, w.Close())
	return b.Bytes(), w.FormDataContentType()
}

func (s *service) uploadForm(body []byte, media string) answer {
	s.t.Helper()
	r := s.request(http.MethodPost, "/reports", bytes.NewReader(body))
	r.Header.Set("Content-Type", media)
	return s.send(r)
}

func TestUploadsAsForms(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.add("example.com")
	first, second := aggregateXML("1", "example.com", firstDay), aggregateXML("2", "example.com", firstDay)
	many := make([][]byte, 101)
	for i := range many {
		many[i] = []byte("x")
	}
	for _, tt := range []struct {
		name  string
		files [][]byte
		want  int
		items string // their statuses
		code  string
	}{
		{"two reports", [][]byte{first, packtest.Gzip(second)}, 201, "stored stored", ""},
		{"known, nothing and a text", [][]byte{first, nil, []byte("hello")}, 200, "duplicate rejected", ""},
		{"a text", [][]byte{[]byte("hello again")}, 422, "rejected", "no_report"},
		{"no file", nil, 400, "", "empty_body"},
		{"too many", many, 400, "", "invalid_form"},
		{"too large", [][]byte{bytes.Repeat([]byte("x"), maxUpload)}, 413, "", "body_too_large"},
	} {
		body, media := form(t, tt.files...)
		got := s.uploadForm(body, media)
		var items []string
		for _, item := range read[receipts](t, got, tt.want).Items {
			items = append(items, item.Status)
		}
		if strings.Join(items, " ") != tt.items || got.header.Get("Dmarcd-Error") != tt.code {
			t.Errorf("%s: got %v and the code %q, want %q and %q", tt.name, items, got.header.Get("Dmarcd-Error"), tt.items, tt.code)
		}
	}
	body, media := form(t, first)
	for code, cut := range map[string][]byte{"invalid_form": body[:len(body)-40], "empty_body": []byte("hello")} {
		got := s.uploadForm(cut, media)
		if got.status != http.StatusBadRequest || got.header.Get("Dmarcd-Error") != code {
			t.Errorf("got %d %q, want 400 %s", got.status, got.header.Get("Dmarcd-Error"), code)
		}
	}
}
