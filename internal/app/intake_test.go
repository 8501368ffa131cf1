package app_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/certtest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// listen answers every connection with serve, until the test ends, and returns the
// address.
func listen(t *testing.T, serve func(conn net.Conn)) string {
	t.Helper()
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close() // ends the loop below
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }() // all is said
				serve(conn)
			})
		}
	})
	return listener.Addr().String()
}

// rejectLogin is a mail server that rejects every login.
func rejectLogin(conn net.Conn) {
	_, _ = fmt.Fprint(conn, "* OK [CAPABILITY IMAP4rev1] ready\r\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		tag, _, _ := strings.Cut(lines.Text(), " ")
		_, _ = fmt.Fprint(conn, tag+" NO not you\r\n")
	}
}

// rejectFolder is a mail server that accepts every login, and has no folder.
func rejectFolder(conn net.Conn) {
	_, _ = fmt.Fprint(conn, "* OK [CAPABILITY IMAP4rev1] ready\r\n")
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		tag, command, _ := strings.Cut(lines.Text(), " ")
		switch word, _, _ := strings.Cut(command, " "); word {
		case "CAPABILITY":
			_, _ = fmt.Fprint(conn, "* CAPABILITY IMAP4rev1\r\n"+tag+" OK done\r\n")
		case "LOGIN", "LOGOUT":
			_, _ = fmt.Fprint(conn, tag+" OK done\r\n")
		default:
			_, _ = fmt.Fprint(conn, tag+" NO [NONEXISTENT] no such folder\r\n")
		}
	}
}

// TestMailboxForm plants a failure of each stage: the page says which one failed and what to do, at
// the field, keeps what was typed except the password, adds nothing, and shows no text of the
// server or of the network.
func TestMailboxForm(t *testing.T) {
	t.Parallel()
	var origin string
	var client *http.Client
	certificate := certtest.New(t, nil, x509.Certificate{DNSNames: []string{"other.example"}})
	secured := listen(t, func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	})
	other := func(conn net.Conn) { _, _ = fmt.Fprint(conn, "SSH-2.0-other\r\n") }
	for i, row := range []struct{ name, server, security, field, message string }{
		{"an unknown name", "imap.missing.example", "none", "server", "The name lookup failed"},
		{"a closed port", "127.0.0.1:1", "none", "server", "The connection failed"},
		{"no TLS", listen(t, other), "tls", "security", "The encryption failed"},
		{"no STARTTLS", listen(t, rejectLogin), "starttls", "security", "The encryption failed"},
		{"a wrong certificate", secured, "tls", "server", "The certificate of the server is not valid"},
		{"something else", listen(t, other), "none", "server", "not as an IMAP server"},
		{"a wrong password", listen(t, rejectLogin), "none", "password", "The sign-in failed"},
		{"a missing folder", listen(t, rejectFolder), "none", "folder", "there is no such folder"},
		{"a private address", "10.0.0.1", "none", "server", "An operator can allow its network with DMARCD_OUTBOUND_ALLOW"},
		{"another private address", "[64:ff9b::a00:1]:143", "none", "server", "An operator can allow its network with DMARCD_OUTBOUND_ALLOW"},
	} {
		const attempts = 5 // of a user, then further ones are throttled
		if i%attempts == 0 {
			d := start(t, storetest.SQLite(t), "DMARCD_OUTBOUND_ALLOW=127.0.0.0/8")
			origin, client = strings.TrimSuffix(d.url, "/api"), browser(t)
			visit(t, client, origin+invitationForm.FindString(d.out), url.Values{"email": {"ann@example.com"}, "password": {"a few words in a row"}})
		}
		response, page := visit(t, client, origin+"/app/settings/mailboxes", url.Values{
			"server": {row.server}, "security": {row.security}, "username": {"typed-before"}, "password": {"open sesame"}, "folder": {"Reports"}, "after": {"keep"},
		})
		_, message, _ := strings.Cut(page, `id="error-`+row.field+`"`)
		message, _, _ = strings.Cut(message, "</strong>")
		if response.status != http.StatusUnprocessableEntity || !strings.Contains(message, row.message) || !strings.Contains(page, `value="typed-before"`) || !strings.Contains(page, `value="Reports"`) {
			t.Errorf("%s: got %d and %s, want 422 and %q at %s", row.name, response.status, page, row.message, row.field)
		}
		for _, reason := range []string{"10.0.0.1:143:", "connection refused", "SSH-2.0", "EOF", "NONEXISTENT", "open sesame", "box_"} {
			if strings.Contains(page, reason) {
				t.Errorf("%s: got %q in the page, want it in the log alone", row.name, reason)
			}
		}
	}
}

var tlsReportURL = regexp.MustCompile(`mailto:([a-z2-7]+)@reports\.example,https://dmarc\.example(/tlsrpt/[a-z2-7]+)"`)

// TestTLSReportsArriveAtTheAddressOfTheSetup delivers a report by HTTPS to the address that a
// domain's owner is told to publish.
func TestTLSReportsArriveAtTheAddressOfTheSetup(t *testing.T) {
	t.Parallel()
	d := start(t, storetest.SQLite(t), "DMARCD_BASE_URL=https://dmarc.example/api", "DMARCD_REPORT_DOMAIN=reports.example")
	origin, token := "http://"+d.listen, tokenForm.FindString(d.out)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if status := ask(t, client, http.MethodPost, origin+"/api/domains", token, `{"domain": "example.com"}`); status != http.StatusCreated {
		t.Fatalf("got %d, want 201", status)
	}
	_, setup := get(t, origin+"/api/domains/example.com/setup", token)
	uri := tlsReportURL.FindStringSubmatch(setup)
	if uri == nil || !strings.HasSuffix(uri[2], "/"+uri[1]) {
		t.Fatalf("got %s, want a record with both ways to the mailbox of the domain", setup)
	}
	report := musttest.Get(os.ReadFile("../../tlsrpt/testdata/report/details_exceed.json"))(t)
	if status := ask(t, client, http.MethodPost, origin+uri[2], "", string(report)); status != http.StatusCreated {
		t.Errorf("got %d, want the report to be taken", status)
	}
}
