package browser_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// logo is an SVG of the profile for BIMI with something in it.
func logo(inside string) string {
	return `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.2" baseProfile="tiny-ps" viewBox="0 0 64 64">` +
		`<title>Example</title><rect width="64" height="64" fill="#1f8f5f"/>` + inside + `</svg>`
}

// TestBuilderShowsALogo shows the logo of a record. An image that could do more than draw is not shown,
// nor is anything asked of other hosts: the page says what is wrong with it. The tab watches for scripts.
func TestBuilderShowsALogo(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	files := map[string]string{
		"/good.svg":     logo(""),
		"/script.svg":   logo(`<script>alert(1)</script>`),
		"/handler.svg":  logo(`<rect width="9" height="9" onload="alert(2)"/>`),
		"/foreign.svg":  logo(`<use xlink:href="https://logo.example.org/asked"/>`),
		"/image.svg":    logo(`<image width="9" height="9" xlink:href="https://logo.example.org/asked"/>`),
		"/embedded.svg": logo(`<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="alert(3)"/></body></foreignObject>`),
		"/entity.svg":   `<!DOCTYPE svg [<!ENTITY x "y">]>` + logo("&x;"),
		"/page.svg":     `<html><script>alert(4)</script></html>`,
	}
	host := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/asked" {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, files[r.URL.Path]) // a client that left needs none
	}))
	certificate := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"logo.example.org"}})
	host.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	host.Config.ErrorLog = log.New(io.Discard, "", 0)
	host.StartTLS()
	t.Cleanup(host.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	musttest.Do(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Leaf.Raw}), 0o600))

	s := serve(t, `_dmarc.example.org TXT "v=DMARC1; p=reject"
logo.example.org A 127.0.0.1
`, "SSL_CERT_FILE="+roots)
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/tools/bimi", http.StatusOK)
	port := host.Listener.Addr().String()
	port = port[strings.LastIndex(port, ":"):]
	b.write("domain", "example.org")
	show := func(file string) {
		t.Helper()
		b.write("l", "https://logo.example.org"+port+file)
		b.becomes("[data-result]", file)
	}
	show("/good.svg")
	b.becomes("[data-result]", "As mailbox providers show it")
	if shown := read(b, evaluate[int](`Promise.all([...document.querySelectorAll(".logo")].map((image) => image.decode().then(() => image.naturalWidth > 0))).then((all) => all.filter(Boolean).length)`)); shown != 3 {
		t.Errorf("got %d pictures of the logo want three", shown)
	}
	b.inspect("builder-logo")
	for _, row := range []struct{ file, want string }{
		{"/script.svg", "it contains a script"},
		{"/handler.svg", "it contains a script"},
		{"/foreign.svg", "it has an external reference"},
		{"/image.svg", "it contains the element image"},
		{"/embedded.svg", "it contains the element foreignObject"},
		{"/entity.svg", "it declares entities"},
		{"/page.svg", "it is not an SVG"},
	} {
		show(row.file)
		b.becomes("[data-result]", row.want)
		if b.has(".logo") || b.has("[data-result] :is(script, foreignObject, image, use)") {
			t.Errorf("%s: got it shown want it refused", row.file)
		}
	}
	b.write("l", "http://logo.example.org/plain.svg")
	b.becomes("[data-result]", "is not an https URL")
	if b.has(".logo") || asked.Load() > 0 {
		t.Errorf("got %d requests of the images, want none", asked.Load())
	}
}
