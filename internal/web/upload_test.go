package web_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

func uploadOf(t *testing.T, files map[string]string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, content := range files {
		part := musttest.Get(form.CreateFormFile("file", name))(t)
		musttest.Get(part.Write([]byte(content)))(t)
	}
	musttest.Do(t, form.Close())
	r := httptest.NewRequest(http.MethodPost, "/app/reports/upload", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// sampleReport is an aggregate report that is not in the sample.
func sampleReport(t *testing.T) string {
	t.Helper()
	content := musttest.Get(os.ReadFile("testdata/report.xml"))(t)
	return string(content)
}

func TestUpload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.send(editor, uploadOf(t, map[string]string{"a.xml": sampleReport(t), "b.zip": "PK"}))
	body := w.Body.String()
	for _, want := range []string{"<html", "Result", "receiver.example", `class="wide">a.xml`, `class="wide">b.zip`} {
		if w.Code != 200 || !strings.Contains(body, want) {
			t.Errorf("got %d without %s, want the page with a receipt for each file", w.Code, want)
		}
	}
	r := uploadOf(t, map[string]string{"a.xml": sampleReport(t)})
	r.Header.Set("Accept", "text/html;profile=fragment, text/html")
	if body := s.send(editor, r).Body.String(); !strings.Contains(body, "duplicate") || strings.Contains(body, "<html") {
		t.Errorf("got %.80q, want the receipts alone", body)
	}
}

func TestRetryIsReportedAboveTheList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.post(editor, "/app/reports/rejected/"+s.rejected.String()+"/retry", nil)
	body := w.Body.String()
	receipts, list := strings.Index(body, "<h2>Result</h2>"), strings.Index(body, "Retry")
	if w.Code != 200 || receipts < 0 || list < receipts || strings.Contains(body, "Drop files here") {
		t.Errorf("got %d with the receipts at %d and the list at %d, want the list below the receipts", w.Code, receipts, list)
	}
}

func TestRejectedUploads(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cut := uploadOf(t, map[string]string{"a": "this is the first half of"})
	cut.Body = io.NopCloser(io.LimitReader(cut.Body, cut.ContentLength-80))
	many := make(map[string]string)
	for i := range 1001 {
		many["folder"+strconv.Itoa(i)] = "" // no report, and not stored
	}
	for _, row := range []struct {
		name    string
		request *http.Request
		want    int
	}{
		{"cut", cut, 400},
		{"too many files", uploadOf(t, many), 422},
		{"no file", uploadOf(t, nil), 422},
		{"no form", httptest.NewRequest(http.MethodPost, "/app/reports/upload", strings.NewReader("x")), 400},
		{"too large", uploadOf(t, map[string]string{"a": strings.Repeat("x", 1<<20+1)}), 413},
	} {
		w := s.send(editor, row.request)
		if w.Code != row.want || strings.Contains(w.Body.String(), `id="error-file"`) != (row.want == http.StatusUnprocessableEntity) {
			t.Errorf("%s: got %d, want %d, and the error at the field if it can be sent again", row.name, w.Code, row.want)
		}
	}
}

// TestOriginal downloads an uploaded file unchanged.
func TestOriginal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.get(viewer, "/app/reports/"+s.tls.String()+"/original")
	for header, want := range map[string]string{
		"Content-Type":        "application/octet-stream",
		"Content-Disposition": "attachment; filename=" + s.tls.String(),
	} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("got %s %q, want %q", header, got, want)
		}
	}
	if got := w.Body.String(); got != tlsJSON() {
		t.Errorf("got %q, want the bytes as they were sent", got)
	}
	if got := s.get(viewer, "/app/reports/rejected/"+s.rejected.String()+"/original").Body.String(); got != "this is no report" {
		t.Errorf("got %q, want the rejected item as it was sent", got)
	}
}

// TestReasonsAreSentences shows why reports were rejected, in sentences.
func TestReasonsAreSentences(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	team := s.service.Team(s.team, service.CommandLine())
	s.upload(t, team, "damaged.xml", strings.Replace(aggregateXML("bigmail.example", "damaged", time.Now().Add(-24*time.Hour)), "<begin>", "<gone>", 1))
	text := s.text(t, viewer, "/app/reports/rejected")
	_, damaged, _ := strings.Cut(text, "damaged.xml")
	if !strings.Contains(damaged, "The report ") || strings.Contains(text, "report rejected:") {
		t.Errorf("got %s", text)
	}
}
