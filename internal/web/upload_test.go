package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func uploadOf(t *testing.T, files map[string]string) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, content := range files {
		part, err := form.CreateFormFile("file", name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/app/reports/upload", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

func TestUpload(t *testing.T) {
	t.Parallel()
	b := &backend{viewer: sampleViewer()}
	pages := newWeb(t, b)
	w := send(pages, uploadOf(t, map[string]string{"a.xml": "<feedback/>"}))
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "What became of it") || !strings.Contains(body, "<html") {
		t.Errorf("got %d, want the page with the receipts", w.Code)
	}
	if want := "upload a.xml <feedback/>"; len(b.calls) != 1 || b.calls[0] != want {
		t.Errorf("got %q, want %q", b.calls, want)
	}

	r := uploadOf(t, map[string]string{"a.xml": "<feedback/>"})
	r.Header.Set("Accept", "text/html;profile=fragment, text/html")
	if body := send(pages, r).Body.String(); !strings.Contains(body, "What became of it") || strings.Contains(body, "<html") {
		t.Errorf("got %.80q, want the receipts alone", body)
	}
}

// TestReceiptsNameTheFile uploads two files, of which one may be refused.
func TestReceiptsNameTheFile(t *testing.T) {
	t.Parallel()
	body := send(newWeb(t, &backend{viewer: sampleViewer()}), uploadOf(t, map[string]string{"a.xml": "<feedback/>", "b.zip": "PK"})).Body.String()
	for _, want := range []string{`<td class="wide">a.xml<small>report.xml</small></td>`, `<td class="wide">b.zip</td>`} {
		if !strings.Contains(body, want) {
			t.Errorf("got receipts without %s, want each with its file", want)
		}
	}
}

func TestRetryIsToldAboveTheList(t *testing.T) {
	t.Parallel()
	b := &backend{viewer: sampleViewer()}
	w := send(newWeb(t, b), post("/app/reports/rejected/rej_1/retry", nil))
	body := w.Body.String()
	receipts, list := strings.Index(body, "What became of it"), strings.Index(body, "Read again")
	if w.Code != 200 || receipts < 0 || list < receipts || strings.Contains(body, "Drop files here") {
		t.Errorf("got %d with the receipts at %d and the list at %d, want the list of what was rejected below the receipts", w.Code, receipts, list)
	}
}

func TestRefusedUploads(t *testing.T) {
	t.Parallel()
	b := &backend{viewer: sampleViewer()}
	options := b.options()
	for _, row := range []struct {
		name    string
		request *http.Request
		want    int
	}{
		{"no file", uploadOf(t, nil), 422},
		{"no form", httptest.NewRequest(http.MethodPost, "/app/reports/upload", strings.NewReader("x")), 400},
		{"too large", uploadOf(t, map[string]string{"a": strings.Repeat("x", int(options.MaxUpload)+1)}), 413},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if w := send(newWeb(t, b), row.request); w.Code != row.want {
				t.Errorf("got %d, want %d", w.Code, row.want)
			}
		})
	}
}

func TestOriginal(t *testing.T) {
	t.Parallel()
	w := get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/reports/rep_1/original")
	for header, want := range map[string]string{
		"Content-Type":        "application/octet-stream",
		"Content-Disposition": `attachment; filename=a_b___c_.xml.gz`,
		"Content-Length":      "8",
	} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("got %s %q, want %q", header, got, want)
		}
	}
	if got := w.Body.String(); got != "original" {
		t.Errorf("got %q, want the bytes as they were sent", got)
	}
}
