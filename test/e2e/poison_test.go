package e2e_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// rejectedReporter is an organization whose reports the database refuses.
const rejectedReporter = "refused.example"

// rejectReports has the database refuse the reports of rejectedReporter, or no longer.
func (in *installation) rejectReports(reject bool) {
	in.t.Helper()
	statement := map[bool]string{
		true:  `CREATE TRIGGER refused BEFORE INSERT ON reports WHEN NEW.organization = '` + rejectedReporter + `' BEGIN SELECT RAISE(ABORT, 'refused'); END`,
		false: `DROP TRIGGER refused`,
	}
	if in.db.Engine == "postgres" {
		statement = map[bool]string{
			true:  `ALTER TABLE reports ADD CONSTRAINT refused CHECK (organization <> '` + rejectedReporter + `') NOT VALID`,
			false: `ALTER TABLE reports DROP CONSTRAINT refused`,
		}
	}
	musttest.Get(in.db.SQL(in.t).ExecContext(in.t.Context(), statement[reject]))(in.t)
}

// poisons returns reports with a message each, by name, that a database could fail to store. Their ids
// begin with a text.
func poisons(begin string) map[string]string {
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)               // never fails
	text := base64.RawURLEncoding.EncodeToString(random)           // no database compresses it
	name := func(bytes int) string { return text[:bytes-1] + "x" } // no hyphen at the end
	edited := func(id, old, piece string) string {
		return strings.Replace(about("example.com", begin+id, 1, 0).xml(), old, piece, 1)
	}
	all := map[string]string{
		"refused":               edited("refused", "Reporter Inc.", rejectedReporter),
		"selector":              edited("selector", "<selector>s1<", "<selector>"+name(2_690)+"<"),
		"long selector":         edited("long selector", "<selector>s1<", "<selector>"+name(12_000)+"<"),
		"long signer":           edited("signer", "<dkim><domain>", "<dkim><domain>"+name(12_000)+"."),
		"From domain of 60 KB":  edited("from", "<header_from>", "<header_from>"+name(60_000)+"."),
		"domain of 60 KB":       edited("domain", "<domain>", "<domain>"+name(60_000)+"."),
		"id of 60 KB":           edited("", "</report_id>", name(60_000)+"</report_id>"),
		"id of 1 MB":            edited("", "</report_id>", name(1_000_000)+"</report_id>"),
		"organization of 60 KB": edited("organization", "Reporter Inc.", name(60_000)),
		"organization of 1 MB":  edited("large organization", "Reporter Inc.", name(1_000_000)),
		"source of 60 KB":       edited("source", "192.0.2.1", name(60_000)),
		"envelope of 60 KB":     edited("envelope", "<header_from>", "<envelope_from>"+name(60_000)+"</envelope_from><header_from>"),
	}
	for i, odd := range []string{strings.Repeat("\x00", 3000), strings.Repeat("&#0;", 3000), strings.Repeat("\xff", 3000), strings.Repeat("\xed\xa0\x80", 3000), strings.Repeat("&#xD800;", 3000)} {
		for _, old := range []string{"Reporter Inc.", "<selector>", "<header_from>", "<domain>", "<source_ip>", "<disposition>", "<report_id>"} {
			id := fmt.Sprintf("odd text %d in %s", i, strings.Trim(old, "<>"))
			all[id] = edited(id, old, old+odd)
		}
	}
	for i, odd := range []string{`\ud800`, `\udfff\ud800`, `\u0000`, `\ud800\udc00`, "\xff\x00", name(300)} {
		odd = strings.Repeat(odd, 200)
		all[fmt.Sprintf("TLS report %d", i)] = fmt.Sprintf(`{"organization-name":"%[1]s","date-range":{"start-datetime":"2026-11-14T00:00:00Z","end-datetime":"2026-11-14T23:59:59Z"},
			"contact-info":"%[1]s","report-id":"%[2]s%[3]d%[1]s","policies":[{"policy":{"policy-type":"sts","policy-string":["%[1]s"],"policy-domain":"%[1]s.example.com","mx-host":["%[1]s"]},
			"summary":{"total-successful-session-count":1,"total-failure-session-count":1},"failure-details":[{"result-type":"%[1]s","sending-mta-ip":"%[1]s","receiving-mx-hostname":"%[1]s","failed-session-count":1}]}]}`,
			odd, begin, i)
		all[fmt.Sprintf("failure report %d", i)] = fmt.Sprintf("From: r@reporter.example\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b\r\n"+
			"Content-Type: message/feedback-report\r\n\r\nFeedback-Type: auth-failure\r\nVersion: 1\r\nUser-Agent: %[2]s\r\nAuth-Failure: dmarc\r\nReported-Domain: %[1]s.example.com\r\n"+
			"Reporting-MTA: dns; %[1]s\r\nSource-IP: %[1]s\r\nDKIM-Selector: %[1]s\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\nFrom: <x@example.com>\r\nMessage-ID: <%[1]s>\r\n\r\n--b--\r\n",
			odd[:min(len(odd), 900)], begin)
	}
	return all
}

// TestPoisonedReports sends reports that a database could fail to store over every transport. What is
// sent after them counts, and what the database refuses is rejected with the reason.
func TestPoisonedReports(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		dropped, brought := t.TempDir(), t.TempDir()
		settings := receiving("DMARCD_INTAKE_FOLDER=" + dropped)
		s := in.serve(settings...)
		in.rejectReports(true)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		mailbox := newMailStore(t)
		id := func(way string) string { return way + " " }
		good := func(way string) string { return about("example.com", id(way)+"good", 5, 0).xml() }
		await := func(way string) {
			t.Helper()
			daemon.Eventually(t, workOffLimit, "the report after the poisoned ones is stored: "+way, func() bool {
				return slices.ContainsFunc(s.reports(""), func(r listedReport) bool { return r.ReportID != nil && *r.ReportID == id(way)+"good" })
			})
		}
		refusals := func() (ids []string) {
			for _, r := range s.rejected() {
				if strings.Contains(r.Reason, "could not be stored") && strings.Contains(r.Reason, "refused") {
					ids = append(ids, r.ID)
				}
			}
			return ids
		}
		wantRefusals := func(way string, want int) {
			t.Helper()
			daemon.Eventually(t, workOffLimit, fmt.Sprintf("%d reports are rejected: %s", want, way), func() bool { return len(refusals()) == want })
		}

		for name, report := range poisons(id("upload")) {
			a := s.send(uploading(in.token, report))
			if a.status >= http.StatusInternalServerError {
				t.Errorf("upload of %s: got %d %s", name, a.status, a.text())
			}
		}
		s.send(uploading(in.token, good("upload"))).wantStatus(t, http.StatusCreated)
		wantRefusals("upload", 1)

		for _, report := range poisons(id("smtp")) {
			mail := report
			if !strings.HasPrefix(report, "From:") || strings.Contains(report, "\x00") {
				mail = mailWith(report)
			}
			if err := s.tryMail("bounce@reporter.example", address, mail); err != nil {
				t.Errorf("mail: %v", err)
			}
		}
		s.mail(address, mailWith(good("smtp")))
		await("smtp")
		wantRefusals("smtp", 2)
		daemon.Eventually(t, workOffLimit, "the spool is empty", func() bool { return s.metric("dmarcd_spool_messages") == 0 })

		for _, report := range append(slices.Collect(maps.Values(poisons(id("imap")))), good("imap")) {
			mail := mailWith(report)
			musttest.Get(mailbox.user.Append("INBOX", literal{strings.NewReader(mail), int64(len(mail))}, &goimap.AppendOptions{Time: time.Now()}))(t)
		}
		mailbox.read(in, settings...)
		await("imap")
		wantRefusals("imap", 3)

		for i, report := range append(slices.Collect(maps.Values(poisons(id("drop")))), good("drop")) {
			writeFiles(t, dropped, fmt.Sprintf("%d.xml", i), report)
		}
		await("drop")
		wantRefusals("drop", 4)
		daemon.Eventually(t, workOffLimit, "the drop folder is empty", func() bool {
			return len(musttest.Get(filepath.Glob(filepath.Join(dropped, "*.xml")))(t)) == 0
		})

		for name, report := range poisons(id("import")) {
			writeFiles(t, brought, strings.ReplaceAll(name, " ", "-")+".xml", report)
		}
		writeFiles(t, brought, "zzz.xml", good("import"))
		r := in.run(command{args: []string{"import", "--team", "default", brought}})
		if r.Status != 1 || !strings.Contains(r.Stderr, filepath.Join(brought, "refused.xml")+": the report could not be stored") {
			t.Errorf("import: got status %d and %s, want 1 and the name of the file", r.Status, r.Stderr)
		}
		await("import")
		wantRefusals("import", 5)

		ids := refusals()
		retry := func() answer {
			return s.send(request{method: http.MethodPost, path: "/insights/rejected/" + ids[0] + "/retry", token: in.token})
		}
		if a := retry(); a.status >= http.StatusInternalServerError || !strings.Contains(a.text(), "could not be stored") {
			t.Errorf("retry: got %d %s, want it rejected again", a.status, a.text())
		}
		if got := refusals(); !slices.Equal(got, ids) {
			t.Errorf("after a retry: got the rejected items %v, want %v", got, ids)
		}
		in.rejectReports(false)
		for len(ids) > 0 {
			retry().wantStatus(t, http.StatusCreated)
			ids = ids[1:]
		}
		if got := refusals(); len(got) > 0 {
			t.Errorf("got %v rejected, want none", got)
		}
		s.Stop()
	})
}
