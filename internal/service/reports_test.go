package service_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSelectionOfReports excludes reports by their days: each end may be open.
func TestSelectionOfReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t)) // with a report of yesterday
	team := w.service.Team(w.team.ID, service.CommandLine())
	yesterday := dmarcd.DayOf(time.Now()) - 1
	before, after := yesterday-1, yesterday+1
	for _, test := range []struct {
		name    string
		days    dmarcd.Days
		want    int
		invalid bool
	}{
		{name: "only before", days: dmarcd.Days{To: &before}},
		{name: "only after", days: dmarcd.Days{From: &after}},
		{name: "from the day", days: dmarcd.Days{From: &yesterday}, want: 1},
		{name: "to the day", days: dmarcd.Days{To: &yesterday}, want: 1},
		{name: "the day", days: dmarcd.Days{From: &yesterday, To: &yesterday}, want: 1},
		{name: "around the day", days: dmarcd.Days{From: &before, To: &after}, want: 1},
		{name: "backwards", days: dmarcd.Days{From: &after, To: &before}, invalid: true},
	} {
		got, err := team.SetCountedAll(t.Context(), service.Selection{Days: test.days}, false)
		if got != test.want || errors.Is(err, dmarcd.ErrInvalid) != test.invalid {
			t.Errorf("%s: got %d and %v, want %d, invalid: %t", test.name, got, err, test.want, test.invalid)
		}
		musttest.Get(team.SetCountedAll(t.Context(), service.Selection{Reporter: "receiver.example"}, true))(t)
	}
}

// TestImportIsAuditedWithItsFirstReports imports nothing, then reports in two steps.
func TestImportIsAuditedWithItsFirstReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	importer := musttest.Get(w.service.Team(w.team.ID, service.CommandLine()).Import("old reports"))(t)
	day := dmarcd.DayOf(time.Now()) - 2
	for i, deliveries := range [][]*dmarcd.Delivery{
		nil,
		{storetest.Delivery(storetest.Aggregate("2", ours, day, storetest.Passed(ours, 1)))},
		{storetest.Delivery(storetest.Aggregate("3", ours, day, storetest.Passed(ours, 1)))},
	} {
		musttest.Get(importer.Receive(t.Context(), deliveries))(t)
		entries := w.entries()
		got := len(slices.DeleteFunc(entries, func(e dmarcd.AuditEntry) bool { return e.Action != "report.import" || e.Target != "old reports" }))
		if want := min(i, 1); got != want {
			t.Errorf("after step %d: got %d audit entries, want %d", i, got, want)
		}
	}
}

// TestReportsToAnAddress sends reports to the address of a domain by HTTPS: only TLS reports
// are stored.
func TestReportsToAnAddress(t *testing.T) {
	t.Parallel()
	const tls = `{"organization-name": "R", "date-range": {"start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z"},
"contact-info": "a@r.example", "report-id": "t1", "policies": [{"policy": {"policy-type": "sts", "policy-domain": "example.com"},
"summary": {"total-successful-session-count": 3, "total-failure-session-count": 0}}]}`
	const dmarc = `<feedback><report_metadata><org_name>R</org_name><email>a@r.example</email><report_id>d1</report_id><date_range><begin>1767225600</begin>
<end>1767311999</end></date_range></report_metadata><policy_published><domain>example.com</domain><p>none</p></policy_published></feedback>`
	w := newWorld(t, storetest.SQLite(t))
	domain := musttest.Get(w.store.Team(w.team.ID).Domain(ctx, ours))(t)
	to := musttest.Get(w.service.Recipient(ctx, domain.ReportMailbox))(t)
	w.must(to.Admit(ctx))
	before := musttest.Get(w.store.Team(w.team.ID).Rejected(ctx, 0, 10))(t)
	for content, reason := range map[string]string{
		tls: "", dmarc: "of the kind aggregate", "a text": "this is text, not a report",
	} {
		receipts, err := to.ReceiveTLS(ctx, w.copyOf(content))
		if none := (*service.NoReportError)(nil); reason != "" && (!errors.As(err, &none) || !strings.HasSuffix(none.Reason, reason) || !errors.Is(err, dmarcd.ErrInvalid)) {
			t.Errorf("got %v, want %q", err, reason)
		}
		if reason == "" && (err != nil || len(receipts) != 1 || receipts[0].Status != dmarcd.Stored) {
			t.Errorf("a TLS report: got %+v, %v; want it stored", receipts, err)
		}
	}
	if after, err := w.store.Team(w.team.ID).Rejected(ctx, 0, 10); err != nil || len(after) != len(before) {
		t.Errorf("got %d rejected reports, %v; want %d", len(after), err, len(before))
	}
	if _, err := w.service.Recipient(ctx, "unknown"); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want %v", err, dmarcd.ErrNotFound)
	}
}

// countedVerifier counts the mails that it authenticates.
type countedVerifier struct{ mails int }

func (v *countedVerifier) Mail(context.Context, io.ReadSeeker) dmarcd.Authentication {
	v.mails++
	return dmarcd.Authentication{}
}

// TestUploadsAreVerified passes the authentication result of an uploaded mail on to its report, and
// includes an excluded report again.
func TestUploadsAreVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	var verifier countedVerifier
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Verifier = &verifier
	})
	if _, err := team.Upload(ctx, "a.txt", w.copyOf("not a report")); err != nil || verifier.mails != 1 {
		t.Errorf("got %d mails verified, %v; want 1", verifier.mails, err)
	}
	for counted, action := range map[bool]string{true: "report.include", false: "report.exclude"} {
		report := musttest.Get(team.SetCounted(ctx, w.report, !counted))(t)
		report, err := team.SetCounted(ctx, report.ID, counted)
		if err != nil || (report.State == dmarcd.ReportCounted) != counted || w.entries()[0].Action != action {
			t.Errorf("got %+v, %v and the entry %+v; want it counted: %t", report, err, w.entries()[0], counted)
		}
	}
}
