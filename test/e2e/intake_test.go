package e2e_test

import (
	"fmt"
	"net/http"
	"net/smtp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// dropLimit is how long a file in the drop folder may take. The folder is polled every
// second, and a file is read when it did not change between two polls.
const dropLimit = 10 * time.Minute

// TestReportCountsOnceInEveryWrapping sends a separate report over each transport in each
// container, then all of them over all transports.
func TestReportCountsOnceInEveryWrapping(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		dropped, brought := t.TempDir(), t.TempDir()
		s := in.serve(receiving("DMARCD_INTAKE_FOLDER=" + dropped)...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)

		var everything []string // pairs of name and report
		var sent int64
		report := func(way string, w wrapping) string {
			id := way + " " + w.name
			xml := about("example.com", id, 10, 1).xml()
			everything = append(everything, fmt.Sprintf("%d.xml", sent), xml)
			sent++
			return w.wrap(xml)
		}

		for _, w := range wrappings() {
			if got := statuses(s.upload(report("upload", w), http.StatusCreated)); got != "stored" {
				t.Errorf("upload of %s: got %s want stored", w.name, got)
			}
			s.wantCounted("upload of "+w.name, "example.com", 10*sent, sent)
		}
		for _, w := range wrappings() {
			content := report("smtp", w)
			if w.name != "report.eml" {
				content = mailWith(content)
			}
			s.mail(address, content)
			s.awaitCounted("example.com", seenLimit, 10*sent, sent)
		}
		for _, w := range wrappings() {
			writeFiles(t, brought, w.name, report("import", w))
		}
		if got, want := in.bringIn(0, brought), (importCounts{Files: 6, Stored: 6, Records: 12, Messages: 66}); got != want {
			t.Errorf("import: got %+v want %+v", got, want)
		}
		s.wantCounted("import", "example.com", 10*sent, sent)
		for _, w := range wrappings() {
			writeFiles(t, dropped, w.name, report("drop", w))
		}
		s.awaitCounted("example.com", dropLimit, 10*sent, sent)

		// Send everything again, then one more report. When that one counts, everything
		// before it on the same transport is done.
		again := zipped(everything...)
		last := func(way string) string {
			sent++
			return about("example.com", "last by "+way, 10, 1).xml()
		}
		if got := s.upload(again, http.StatusOK); len(got) != 24 || statuses(got) != "duplicate" {
			t.Errorf("upload of everything: got %d items %s want 24 duplicates", len(got), statuses(got))
		}
		s.mail(address, mailWith(again))
		s.mail(address, mailWith(last("smtp")))
		s.awaitCounted("example.com", seenLimit, 10*sent, sent)
		writeFiles(t, brought, "everything.zip", again)
		if got, want := in.bringIn(0, filepath.Join(brought, "everything.zip")), (importCounts{Files: 1, Duplicate: 24}); got != want {
			t.Errorf("import of everything: got %+v want %+v", got, want)
		}
		writeFiles(t, dropped, "again.zip", again, "last.xml", last("drop"))
		s.awaitCounted("example.com", dropLimit, 10*sent, sent)
		daemon.Eventually(t, dropLimit, "the dropped files are done", func() bool {
			done, err := os.ReadDir(filepath.Join(dropped, "done"))
			return err == nil && len(done) == 8
		})

		s.wantCounted("everything", "", 10*sent, sent)
		byIntake := map[string]int{}
		for _, r := range s.reports("") {
			byIntake[r.Intake]++
		}
		if byIntake["upload"] != 6 || byIntake["smtp"] != 7 || byIntake["import"] != 13 {
			t.Errorf("the reports that are kept, by intake: got %v want 6 by upload, 7 by smtp, 13 by import", byIntake)
		}
		if got := s.rejected(); len(got) != 0 {
			t.Errorf("got %v rejected want nothing", got)
		}
	})
}

// TestUploadOfAMixedArchive uploads reports next to other files.
func TestUploadOfAMixedArchive(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		good, other := about("example.com", "good", 3, 2).xml(), about("other.example", "other", 1, 1).xml()
		const bad = "<feedback><record></feedback>"
		rows := []struct {
			name     string
			content  string
			status   int
			statuses string
		}{
			{"nothing that can be read", zipped("a.xml", bad), http.StatusUnprocessableEntity, "rejected"},
			{"something new", zipped("a.xml", bad, "b.xml", good, "c.xml", other), http.StatusCreated, "rejected stored unclaimed"},
			{"nothing new", zipped("a.xml", bad, "b.xml", good), http.StatusOK, "duplicate rejected"},
			{"no archive and no report", "hello", http.StatusUnprocessableEntity, "rejected"},
		}
		for _, row := range rows {
			receipts := s.upload(row.content, row.status)
			if got := statuses(receipts); got != row.statuses {
				t.Errorf("%s: got %s want %s", row.name, got, row.statuses)
			}
			for _, r := range receipts {
				if (r.Status == "rejected") != (r.Reason != nil && *r.Reason != "") {
					t.Errorf("%s: %s with the reason %v", row.name, r.Status, r.Reason)
				}
			}
		}
		s.wantCounted("afterwards", "", 3, 2)

		// Rejected originals can be downloaded unchanged, and retried.
		refusals := s.rejected()
		i := slices.IndexFunc(refusals, func(r listedRejection) bool { return r.Size == int64(len("hello")) })
		if i < 0 {
			t.Fatalf("got %v want what was rejected", refusals)
		}
		original := s.get("/insights/rejected/" + refusals[i].ID + "/original")
		if original.status != http.StatusOK || original.text() != "hello" {
			t.Errorf("the original: got %d %q want hello", original.status, original.text())
		}
		retry := s.send(request{method: http.MethodPost, path: "/insights/rejected/" + refusals[i].ID + "/retry", token: in.token})
		retry.wantStatus(t, http.StatusUnprocessableEntity)
		if got := s.rejected(); len(got) != len(refusals) {
			t.Errorf("after a retry: got %d rejected want %d", len(got), len(refusals))
		}
	})
}

// TestReportIsReadBack compares a stored report with the original.
func TestReportIsReadBack(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(unscheduled)
		s.add("example.com")
		sent := gzipped(about("example.com", "<1@reporter.example>", 3, 2).xml())
		s.upload(sent, http.StatusCreated)
		reports := s.reports("?domain=example.com&kind=aggregate")
		if len(reports) != 1 {
			t.Fatalf("got %d reports want 1", len(reports))
		}
		r := reports[0]
		if r.Messages != 5 || r.Compliant != 3 || r.Intake != "upload" || r.Genuine != "unknown" || r.Replaced {
			t.Errorf("got %+v want 5 messages, 3 compliant, uploaded", r)
		}
		if original := s.get("/insights/reports/" + r.ID + "/original"); original.text() != sent {
			t.Errorf("the original: got %d bytes want the %d that were sent", len(original.body), len(sent))
		}
		type record struct {
			ForDomain *string `json:"for_domain"`
			Count     int64   `json:"count"`
			Compliant bool    `json:"compliant"`
		}
		var sum int64
		for _, rec := range all[record](s, "/insights/reports/"+r.ID+"/records", 1) {
			sum += rec.Count
			if rec.ForDomain == nil || *rec.ForDomain != "example.com" {
				t.Errorf("a record counts for %v want example.com", rec.ForDomain)
			}
		}
		if sum != 5 {
			t.Errorf("the records: got %d messages want 5", sum)
		}
		for _, query := range []string{"?domain=other.example", "?kind=tls", "?to=2026-11-13", "?organization=unknown"} {
			if got := s.reports(query); len(got) != 0 {
				t.Errorf("%s: got %v want none", query, got)
			}
		}
	})
}

// faultLimit is how long a fault may take to start or end.
const faultLimit = 10 * time.Minute

// fault is a temporary failure.
type fault struct {
	begin, end func()
	// deferring are the transports that must defer senders meanwhile.
	deferring []string
}

// underLoad sends reports over every transport during faults. No acknowledged report may
// be lost, and all transports must recover without a restart.
func underLoad(in *installation, s *server, settings []string, faults ...fault) {
	t := in.t
	t.Helper()
	in.mayLogErrors = true
	ledger := newReportLedger()
	senders := loaders(ledger, intakeLoads(), in.reportAddress("default", "example.com", settings...), 1)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	defer sending.Wait()
	stopped := sync.OnceFunc(func() { close(stop) })
	defer stopped()
	for _, l := range senders {
		sending.Go(func() { l.run(s, stop) })
	}
	working := func(what string) {
		before := ledger.times(acknowledged)
		daemon.Eventually(t, faultLimit, what+": reports come in by every way", func() bool {
			now := ledger.times(acknowledged)
			return !slices.ContainsFunc(intakeLoads(), func(l intakeLoad) bool { return now[l.name] < before[l.name]+3 })
		})
	}
	working("before")
	for _, f := range faults {
		before := ledger.times(deferred)
		f.begin()
		daemon.Eventually(t, faultLimit, "senders are put off", func() bool {
			now := ledger.times(deferred)
			return !slices.ContainsFunc(f.deferring, func(way string) bool { return now[way] == before[way] })
		})
		s.outside("/healthz").wantStatus(t, http.StatusOK)
		f.end()
		working("after")
	}
	stopped()
	sending.Wait()
	ledger.settle(s)
	ledger.wantNoRefusals(t)
	s.Stop()
	in.healthy(settings...)
	t.Logf("acknowledged %v, put off %v", ledger.times(acknowledged), ledger.times(deferred))
}

func TestFullDiskUnderLoad(t *testing.T) {
	each(t, reporterZone(), func(t *testing.T, in *installation) {
		d := in.onSmallDisk()
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		full := fault{begin: func() { d.fill(s) }, end: func() { d.empty(s) }, deferring: []string{"smtp"}}
		if in.db.Engine == "sqlite" { // the database is on this disk too
			full.deferring = append(full.deferring, "upload")
		}
		underLoad(in, s, settings, full, full)
	})
}

func TestLockedDatabaseUnderLoad(t *testing.T) {
	t.Parallel()
	onSQLite(t, reporterZone(), func(t *testing.T, in *installation) {
		settings := receiving()
		s := in.serve(settings...)
		s.add("example.com")
		lock := musttest.Get(in.db.SQL(t).Conn(t.Context()))(t)
		defer func() { _ = lock.Close() }() // the transaction has ended
		do := func(statement string) func() {
			return func() {
				// Wait for running writes of the server.
				daemon.Eventually(t, faultLimit, statement, func() bool {
					_, err := lock.ExecContext(t.Context(), statement)
					return err == nil
				})
			}
		}
		// Mail continues: the spool is not in the database.
		underLoad(in, s, settings, fault{begin: do(`BEGIN EXCLUSIVE`), end: do(`ROLLBACK`), deferring: []string{"upload"}})
	})
}

func TestDatabaseOutOfReachUnderLoad(t *testing.T) {
	t.Parallel()
	onPostgres(t, reporterZone(), func(_ *testing.T, in *installation) {
		p, through := startProxy(in.t, in.db.DSN)
		settings := receiving("DMARCD_DATABASE=" + through)
		s := in.serve(settings...)
		s.add("example.com")
		gone := fault{begin: p.cut, end: p.restore, deferring: []string{"upload", "smtp"}}
		underLoad(in, s, settings, gone, gone)
	})
}

// TestIntakeLimits sends messages at the limits and above.
func TestIntakeLimits(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		const limit = 8 << 10
		s := in.serve(receiving("DMARCD_LIMIT_UPLOAD=8192", "DMARCD_LIMIT_MAIL=8192")...)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)

		report := about("example.com", "1", 1, 0).xml()
		s.upload(report+strings.Repeat(" ", limit-len(report)), http.StatusCreated)
		for _, chunked := range []bool{false, true} {
			r := uploading(in.token, about("example.com", "2", 1, 0).xml()+strings.Repeat(" ", limit))
			r.chunked = chunked
			s.send(r).wantStatus(t, http.StatusRequestEntityTooLarge)
		}
		s.send(uploading(in.token, "")).wantStatus(t, http.StatusBadRequest)
		encoded := uploading(in.token, gzipped(report))
		encoded.header["Content-Encoding"] = "gzip"
		s.send(encoded).wantStatus(t, http.StatusUnsupportedMediaType)

		mail := mailWith(about("example.com", "3", 1, 0).xml())
		s.mail(address, mail)
		err := s.tryMail("bounce@reporter.example", address, mail+strings.Repeat("more than may be sent\r\n", limit/20))
		if got := smtpCode(err); got != 552 {
			t.Errorf("a mail that is too large: got %v want 552", err)
		}
		err = s.tryMail("bounce@reporter.example", "unknown@reports.example", mail)
		if got := smtpCode(err); got != 550 {
			t.Errorf("an unknown recipient: got %v want 550", err)
		}
		err = s.tryMail("bounce@reporter.example", "someone@example.net", mail)
		if got := smtpCode(err); got != 550 {
			t.Errorf("a recipient elsewhere: got %v want 550", err)
		}
		s.awaitCounted("example.com", seenLimit, 2, 0)
	})
}

// TestMailLimitIsAnnounced checks that a mail is rejected by its declared size.
func TestMailLimitIsAnnounced(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		s := in.serve(receiving("DMARCD_LIMIT_MAIL=8192")...)
		c := musttest.Get(smtp.Dial(s.SMTP))(t)
		defer func() { _ = c.Close() }() // at its end
		if _, size := c.Extension("SIZE"); size != "8192" {
			t.Errorf("SIZE: got %q want 8192", size)
		}
		musttest.Do(t, c.Text.PrintfLine("MAIL FROM:<bounce@reporter.example> SIZE=8193"))
		if _, _, err := c.Text.ReadResponse(250); smtpCode(err) != 552 {
			t.Errorf("a mail that is told to be too large: got %v want 552", err)
		}
	})
}
