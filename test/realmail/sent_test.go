package realmail_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	netmail "net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	msgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// inboxConfiguration has Exim take all mail into one Maildir.
const inboxConfiguration = `
spool_directory = %[1]s/queue
log_file_path = %[1]s/%%slog
pid_file_path = %[1]s/pid
exim_user = %[2]d
exim_group = %[3]d
primary_hostname = mail.recipient.example
deliver_drop_privilege = true
keep_environment =
%[4]s
acl_smtp_rcpt = take

begin acl
take:
  accept control = dkim_disable_verify

begin routers
all:
  driver = accept
  transport = maildir

begin transports
maildir:
  driver = appendfile
  directory = %[1]s/mail
  maildir_format
  envelope_to_add
  user = %[2]d
  group = %[3]d
`

// inbox is a mail server that takes all mail.
type inbox struct{ address, folder string }

// startInbox starts Exim, which goes with the test. It offers TLS if there is a certificate, in
// PEM with its key.
func startInbox(t *testing.T, certificate []byte) *inbox {
	t.Helper()
	as, folder, port := daemon.Unprivileged(t), daemon.ServerFolder(t), daemon.FreePort()
	uid, gid := os.Getuid(), os.Getgid()
	if as != nil {
		uid, gid = int(as.Uid), int(as.Gid)
	}
	encryption := "tls_advertise_hosts ="
	if certificate != nil {
		file := filepath.Join(folder, "tls.pem")
		musttest.Do(t, os.WriteFile(file, certificate, 0o644))
		encryption = "tls_advertise_hosts = *\ntls_certificate = " + file + "\ntls_privatekey = " + file
	}
	configuration := filepath.Join(folder, "exim.conf")
	musttest.Do(t, os.WriteFile(configuration, fmt.Appendf(nil, inboxConfiguration, folder, uid, gid, encryption), 0o644))
	daemon.ShowIfFailed(t, filepath.Join(folder, "mainlog"))
	server := daemon.StartServer(t, folder, findExim(t), "-C", configuration, "-bdf", "-oX", "127.0.0.1."+strconv.Itoa(port))
	in := &inbox{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), folder: folder}
	server.Await(t, mailLimit, "listens", func() bool {
		conn, err := net.Dial("tcp", in.address)
		return err == nil && conn.Close() == nil
	})
	return in
}

// await returns the mail to an address.
func (in *inbox) await(t *testing.T, to string) []byte {
	t.Helper()
	var found []byte
	daemon.Eventually(t, 2*mailLimit, "mail to "+to, func() bool {
		files := musttest.Get(filepath.Glob(filepath.Join(in.folder, "mail", "new", "*")))(t)
		for _, file := range files {
			content := musttest.Get(os.ReadFile(file))(t)
			if bytes.Contains(content, []byte("Envelope-to: "+to+"\n")) {
				found = content
			}
		}
		return found != nil
	})
	return found
}

// dkimKey writes a private key, and returns its file and the record of the public one.
func dkimKey(t *testing.T) (file, record string) {
	t.Helper()
	key := musttest.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	encoded := musttest.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	public := musttest.Get(x509.MarshalPKIXPublicKey(&key.PublicKey))(t)
	file = filepath.Join(t.TempDir(), "dkim.pem")
	musttest.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	return file, "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(public)
}

// letterParts are the decoded parts of a mail by their types.
type letterParts map[string]string

func (parts letterParts) read(t *testing.T, header interface{ Get(string) string }, body io.Reader) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	musttest.Do(t, err)
	if strings.HasPrefix(kind, "multipart/") {
		reader := multipart.NewReader(body, parameters["boundary"])
		for {
			part, err := reader.NextRawPart()
			if errors.Is(err, io.EOF) {
				return
			}
			musttest.Do(t, err)
			parts.read(t, part.Header, part)
		}
	}
	switch header.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content := musttest.Get(io.ReadAll(body))(t)
	parts[kind] = strings.ReplaceAll(string(content), "\r\n", "\n")
	if kind == "image/png" {
		parts[kind] = string(content)
		if id := header.Get("Content-Id"); id != "<chart>" {
			t.Errorf("the chart has the id %q", id)
		}
	}
}

// TestSentMail has the daemon send an alert, a digest and an invitation to Exim, and reads
// them back. The digest has the figures of the interface.
func TestSentMail(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	relay := startInbox(t, nil)
	key, record := dkimKey(t)
	if _, ok := dkim.ParseKey(record); !ok {
		t.Fatalf("the key is invalid: %s", record)
	}
	folder := t.TempDir()
	in := install(t, folder, "DMARCD_MAIL_RELAY=smtp://"+relay.address+"?tls=off", "DMARCD_MAIL_FROM=dmarcd <dmarc@sender.example>",
		"DMARCD_MAIL_DKIM_KEY="+key, "DMARCD_MAIL_DKIM_SELECTOR=s1")
	first := in.Serve(t)
	d := &receiver{Daemon: first, token: in.Do(t, "token", "create", "--team", "default")}
	d.addDomain(t, "example.com")
	in.Do(t, "import", "--team", "default", reportsOfWeeks(t, 8, 2))
	in.Do(t, "webhook", "add", "--team", "default", "--format", "email", "--kind", "report.held", "mailto:ann@recipient.example")
	in.Do(t, "webhook", "add", "--team", "default", "--format", "email", "--kind", "digest.weekly", "mailto:bob@recipient.example")
	in.Do(t, "user", "invite", "--team", "default", "carol@recipient.example")
	held := filepath.Join(t.TempDir(), "held.xml")
	writeReport(t, held, "held", time.Now().Add(-24*time.Hour), 2_000_000_000, 1)
	in.Do(t, "import", "--team", "default", held)
	first.Stop()
	// The digest of last week is for those who subscribed before it was due.
	database := storetest.DB{Engine: "sqlite", DSN: filepath.Join(folder, "data", "dmarcd.db")}.SQL(t)
	musttest.Get(database.ExecContext(t.Context(), `UPDATE webhooks SET created_at = 1`))(t)
	d.Daemon = in.Serve(t)
	t.Cleanup(d.Stop)

	read := func(to string, listed, chart bool) letterParts {
		t.Helper()
		content := relay.await(t, to)
		verified, err := msgauth.VerifyWithOptions(bytes.NewReader(bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))), &msgauth.VerifyOptions{
			LookupTXT: func(name string) ([]string, error) {
				if name != dkim.QueryName("s1", "sender.example") {
					return nil, errors.New("no such name")
				}
				return []string{record}, nil
			},
		})
		if err != nil || len(verified) != 1 || verified[0].Err != nil || verified[0].Domain != "sender.example" {
			t.Errorf("%s: DKIM: got %+v, %v", to, verified, err)
		}
		message := musttest.Get(netmail.ReadMessage(bytes.NewReader(content)))(t)
		unsubscribe, post := message.Header.Get("List-Unsubscribe"), message.Header.Get("List-Unsubscribe-Post")
		if listed != (strings.HasPrefix(unsubscribe, "<http") && post == "List-Unsubscribe=One-Click") || !listed && unsubscribe+post != "" {
			t.Errorf("%s: List-Unsubscribe %q, List-Unsubscribe-Post %q", to, unsubscribe, post)
		}
		parts := letterParts{}
		parts.read(t, message.Header, message.Body)
		if parts["text/plain"] == "" || !strings.HasPrefix(parts["text/html"], "<!doctype html>") {
			t.Errorf("%s: got %q", to, parts)
		}
		if _, err := png.Decode(strings.NewReader(parts["image/png"])); chart != (err == nil) {
			t.Errorf("%s: the chart: %v", to, err)
		}
		return parts
	}
	if got := read("ann@recipient.example", true, true)["text/plain"]; !strings.Contains(got, "is not counted until an editor releases it") {
		t.Errorf("the alert says %q", got)
	}
	if got := read("carol@recipient.example", false, false)["text/plain"]; !strings.Contains(got, "/app/invitation/") {
		t.Errorf("the invitation says %q", got)
	}
	digest := read("bob@recipient.example", true, true)["text/plain"]
	period := regexp.MustCompile(`Weekly digest of (.+) to (.+?):`).FindStringSubmatch(digest)
	if period == nil {
		t.Fatalf("the digest says %q", digest)
	}
	day := func(text string) string { return musttest.Get(time.Parse("2 Jan 2006", text))(t).Format(time.DateOnly) }
	sum := ask[struct {
		Total        int64 `json:"total"`
		Compliant    int64 `json:"compliant"`
		NonCompliant int64 `json:"non_compliant"`
	}](t, d, http.MethodGet, "/reports?from="+day(period[1])+"&to="+day(period[2]), "", http.StatusOK)
	if sum.Total != 70 {
		t.Errorf("got %+v in a week, want 70 messages", sum)
	}
	for _, want := range []string{
		"\nMessages: " + phrase.Number(sum.Total) + "\n", "\nPasses DMARC: " + phrase.Percent(sum.Compliant, sum.Total) + "\n",
		"\nFails DMARC: " + phrase.Number(sum.NonCompliant) + "\n", "\n- example.com: Messages 70, Passes DMARC 80.0 %\n",
	} {
		if !strings.Contains(digest, want) {
			t.Errorf("the digest has no line %q:\n%s", want, digest)
		}
	}
}

// reportsOfWeeks writes a report for each of the last days, and returns their folder.
func reportsOfWeeks(t *testing.T, pass, fail int64) string {
	t.Helper()
	folder := t.TempDir()
	for days := range 21 {
		writeReport(t, filepath.Join(folder, fmt.Sprintf("%d.xml", days)), strconv.Itoa(days), time.Now().Add(-time.Duration(days)*24*time.Hour), pass, fail)
	}
	return folder
}

// writeReport writes an aggregate report about a day.
func writeReport(t *testing.T, file, id string, day time.Time, pass, fail int64) {
	t.Helper()
	const record = "<record><row><source_ip>192.0.2.1</source_ip><count>%d</count>" +
		"<policy_evaluated><disposition>none</disposition><dkim>%s</dkim><spf>fail</spf></policy_evaluated></row>" +
		"<identifiers><header_from>example.com</header_from></identifiers><auth_results/></record>"
	begin := day.Truncate(24 * time.Hour).Unix()
	report := fmt.Sprintf("<feedback><report_metadata><org_name>Reporter Inc.</org_name><email>noreply@reporter.example</email>"+
		"<report_id>%s</report_id><date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>"+
		"<policy_published><domain>example.com</domain><p>none</p></policy_published>", id, begin, begin+86399) +
		fmt.Sprintf(record, pass, "pass") + fmt.Sprintf(record, fail, "fail") + "</feedback>"
	musttest.Do(t, os.WriteFile(file, []byte(report), 0o600))
}
