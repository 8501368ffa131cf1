package web_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// TestRecordsAreFiles sends the forms beside records.
func TestRecordsAreFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, page := range []string{
		"/app/domains/example.com/setup", "/app/domains/example.com/dns", "/app/tools/dmarc?domain=example.com&p=reject",
	} {
		body := s.body(t, viewer, page)
		if !strings.Contains(body, `action="/app/record"`) {
			t.Errorf("%s: got no form for a file of a record, want one", page)
		}
		for i, form := range strings.Split(body, `action="/app/record"`)[1:] {
			query := url.Values{"format": {recordfile.IDs()[i%len(recordfile.IDs())]}}
			for _, name := range []string{"name", "type", "value"} {
				_, after, _ := strings.Cut(form, `name="`+name+`" value="`)
				value, _, _ := strings.Cut(after, `"`)
				query.Set(name, html.UnescapeString(value))
			}
			w := s.get(viewer, "/app/record?"+query.Encode())
			if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment; filename=") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v: got %d and the header %v, want a file", page, query, w.Code, w.Header())
			}
		}
	}
	for query, want := range map[string]int{
		"":                               http.StatusUnprocessableEntity,
		"format=bind":                    http.StatusNotFound,
		"format=bind&name=a'b.example":   http.StatusNotFound,
		"format=csv&name=a.example":      http.StatusUnprocessableEntity,
		"format=bind&name=a.example.com": http.StatusUnprocessableEntity,
		"format=bind&type=TXT&name=a.example.com&value=a%0Ab": http.StatusUnprocessableEntity,
	} {
		if w := s.get(viewer, "/app/record?"+query); w.Code != want {
			t.Errorf("%s: got %d want %d", query, w.Code, want)
		}
	}
}
