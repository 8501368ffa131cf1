package backend_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/web"
)

// TestNumbersAgree asks all pages about the same mail.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		s.fill(t, team)
		// What was before the period.
		storetest.Count(t, team, sampleDomain, dmarcd.DayCount{Day: s.day - 8, Summary: dmarcd.Summary{Compliant: 4}})
		page := s.Team(viewer)
		const passed, all, before = 7, 10, 4

		overview, err := page.Domains.Overview(t.Context(), web.OverviewQuery{Period: s.week(), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if overview.Counts.Compliant != passed || overview.Counts.Total() != all || overview.Before.Total() != before || len(overview.Days) != 7 {
			t.Errorf("overview: got %+v, before %+v in %d days", overview.Counts, overview.Before, len(overview.Days))
		}
		if diff := cmp.Diff([]int64{0, 0, 0, 0, 0, all, 0}, overview.Domains[0].Trend); diff != "" {
			t.Errorf("trend (-want +got):\n%s", diff)
		}
		timeline, err := page.Sources.Timeline(t.Context(), sampleDomain, s.week())
		if err != nil || timeline.Counts != overview.Counts || timeline.Before != overview.Before || timeline.Days[5].Total() != all {
			t.Errorf("timeline: got %+v and %v, want what the overview has", timeline, err)
		}
		query := web.SourceQuery{Domain: sampleDomain, Period: s.week(), Group: web.GroupFrom, Limit: 10}
		sources, err := page.Sources.Sources(t.Context(), query)
		if err != nil || sources.Counts != overview.Counts || len(sources.Sources) != 1 || sources.Sources[0].Key != sampleDomain || sources.Readiness == nil {
			t.Errorf("sources: got %+v and %v, want one with what the overview has", sources, err)
		}
		query.Key = sampleDomain
		source, err := page.Sources.Source(t.Context(), query)
		if err != nil || source.Counts != overview.Counts || len(source.Days) != 7 || len(source.Parts) != 6 {
			t.Errorf("source: got %+v and %v, want its days and parts", source, err)
		}
		flows, err := page.Sources.Flows(t.Context(), query)
		var sum int64
		for _, f := range flows {
			sum += f.Messages
		}
		if err != nil || sum != all {
			t.Errorf("flows: got %d messages and %v, want %d", sum, err, all)
		}
		query.Limit = 1
		records, err := page.Sources.Records(t.Context(), query)
		if err != nil || len(records.Items) != 1 || records.Next == nil {
			t.Fatalf("records: got %+v and %v, want the first of two", records, err)
		}
		query.After = *records.Next
		more, err := page.Sources.Records(t.Context(), query)
		if err != nil || len(more.Items) != 1 || more.Next != nil || more.Items[0].Messages+records.Items[0].Messages != all {
			t.Errorf("records: got %+v and %v, want the second of two", more, err)
		}
	})
}

// TestUnlookedDomainIsATask has a domain that nobody has looked at.
func TestUnlookedDomainIsATask(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		if _, err := team.AddDomain(t.Context(), sampleDomain, s.now); err != nil {
			t.Fatal(err)
		}
		overview, err := s.Team(viewer).Domains.Overview(t.Context(), web.OverviewQuery{Period: s.week(), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		want := []web.Task{{Domain: sampleDomain, Level: dmarcd.LevelInfo, What: "The DNS has not given an answer yet: nobody can tell what is to be done."}}
		if diff := cmp.Diff(want, overview.Tasks); diff != "" || overview.Troubled != 1 || overview.Domains[0].Known {
			t.Errorf("got %d troubled and known %t, want one that is not known; tasks (-want +got):\n%s", overview.Troubled, overview.Domains[0].Known, diff)
		}
	})
}

func TestUploadedReportCanBeRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		if _, err := team.AddDomain(t.Context(), sampleDomain, s.now); err != nil {
			t.Fatal(err)
		}
		page := s.Team(viewer)
		receipts, err := page.Reports.Upload(t.Context(), "report.xml", sampleReport(t))
		if err != nil || len(receipts) != 1 || receipts[0].Status != dmarcd.Stored {
			t.Fatalf("got %+v and %v, want it stored", receipts, err)
		}
		list, err := page.Reports.Reports(t.Context(), web.ReportQuery{Domain: sampleDomain, Limit: 1})
		if err != nil || len(list.Items) != 1 || list.Next != nil {
			t.Fatalf("got %+v and %v, want the report", list, err)
		}
		report, err := page.Reports.Report(t.Context(), list.Items[0].ID.String(), "", 1)
		if err != nil || report.Next != "" {
			t.Fatalf("got %v and more after %q, want the whole report", err, report.Next)
		}
		wantFacts := []web.Fact{
			{Name: "Contact", Value: "postmaster@receiver.example"},
			{Name: "Policy that the reporter saw", Value: "p=quarantine; sp=reject; adkim=r; aspf=r; pct=100"},
			{Name: "Form", Value: "RFC 7489"},
			{Name: "Addresses", Value: "1"},
		}
		if diff := cmp.Diff(wantFacts, report.Facts); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
		wantRecords := []web.Record{{
			Reporter: "receiver.example", Begin: time.Unix(1794614400, 0).UTC(), Address: "192.0.2.17", Messages: 5,
			Disposition: "none", DKIM: "pass", SPF: "fail", HeaderFrom: sampleDomain, EnvelopeFrom: "bounce.example.net",
			DKIMResults: []string{"pass (example.com, s1)"}, SPFResults: []string{"pass (bounce.example.net)"},
		}}
		if diff := cmp.Diff(wantRecords, report.Records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		original, err := page.Reports.Original(t.Context(), report.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(original.Body)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(sampleReport(t))
		if err != nil || string(got) != string(want) || original.Size != int64(len(want)) {
			t.Errorf("got %d bytes of %d, want what was sent (%v)", len(got), original.Size, err)
		}
	})
}

// TestRecordsOfAReportComeInParts reads a report of three records two at a time.
func TestRecordsOfAReportComeInParts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		if _, err := team.AddDomain(t.Context(), sampleDomain, s.now); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(sampleReport(t))
		if err != nil {
			t.Fatal(err)
		}
		head, record, _ := strings.Cut(string(text), "<record>")
		record = "<record>" + strings.TrimSuffix(strings.TrimSpace(record), "</feedback>")
		whole := head + record + strings.Replace(record, "192.0.2.17", "192.0.2.18", 1) + strings.Replace(record, "192.0.2.17", "192.0.2.19", 1) + "</feedback>"
		page := s.Team(viewer)
		receipts, err := page.Reports.Upload(t.Context(), "report.xml", strings.NewReader(whole))
		if err != nil || len(receipts) != 1 {
			t.Fatalf("got %+v and %v, want it stored", receipts, err)
		}
		var parts []string
		for after := ""; len(parts) < 5; {
			report, err := page.Reports.Report(t.Context(), receipts[0].ID.String(), after, 2)
			if err != nil {
				t.Fatal(err)
			}
			var addresses []string
			for _, r := range report.Records {
				addresses = append(addresses, r.Address)
			}
			parts = append(parts, strings.Join(addresses, " "))
			if after = report.Next; after == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"192.0.2.17 192.0.2.18", "192.0.2.19"}, parts); diff != "" {
			t.Errorf("parts (-want +got):\n%s", diff)
		}
		if _, err := page.Reports.Report(t.Context(), receipts[0].ID.String(), "nowhere", 2); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("a cursor that is none: got %v, want dmarcd.ErrInvalid", err)
		}
	})
}

func TestQuirksFilter(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db)
		team, viewer := s.owner(t, "acme", "ann@example.com")
		if _, err := team.AddDomain(t.Context(), sampleDomain, s.now); err != nil {
			t.Fatal(err)
		}
		plain := storetest.Aggregate("1", sampleDomain, s.day, storetest.Passed(sampleDomain, 1))
		plain.Quirks = nil
		odd := storetest.Aggregate("2", sampleDomain, s.day, storetest.Passed(sampleDomain, 2))
		odd.Quirks = []dmarcd.Quirk{{Name: "missing-version", Count: 1}}
		if _, err := team.Receive(t.Context(), []*dmarcd.Delivery{storetest.Delivery(plain), storetest.Delivery(odd)}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Team(viewer).Reports.Reports(t.Context(), web.ReportQuery{Quirks: true, Limit: 10})
		if err != nil || len(found.Items) != 1 || found.Items[0].ExternalID != odd.ExternalID {
			t.Errorf("got %+v and %v, want the odd one", found, err)
		}
	})
}

// TestSetup has the guide of a domain before and after the DNS was looked at.
func TestSetup(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	page := s.Team(viewer)
	if _, err := page.Domains.AddDomain(t.Context(), "example.org"); err != nil {
		t.Fatal(err)
	}
	head, err := page.Domains.Domain(t.Context(), "EXAMPLE.org.")
	if err != nil || head.Applied != "reject" || head.ReportAddress != head.ReportMailbox+"@reports.example" {
		t.Errorf("got %+v and %v, want what the DNS says", head, err)
	}
	setup, err := page.Checks.Setup(t.Context(), "example.org")
	if err != nil || len(setup.Records) != 3 {
		t.Fatalf("got %+v and %v, want three records", setup, err)
	}
	dmarc := setup.Records[0]
	if want := "v=DMARC1; p=reject; rua=mailto:" + head.ReportAddress; dmarc.Value != want || dmarc.Seen == nil || *dmarc.Seen {
		t.Errorf("got %+v, want %q that is not seen", dmarc, want)
	}
	if tls := setup.Records[2]; tls.Seen != nil {
		t.Errorf("got %+v, want that nobody knows", tls)
	}
}

// TestWatching looks at the DNS only where that was not done a moment ago.
func TestWatching(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	page := s.Team(viewer)
	if _, err := page.Domains.AddDomain(t.Context(), "example.org"); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {5 * time.Second, 0}, {10 * time.Second, 1}} {
		s.now = s.now.Add(row.after)
		if err := page.Checks.Watch(t.Context(), "example.org"); err != nil || s.examined != row.want {
			t.Errorf("after %s: got %d looks and %v, want %d", row.after, s.examined, err, row.want)
		}
	}
}

func TestRetentionFollowsTheInstallation(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t))
	_, viewer := s.owner(t, "acme", "ann@example.com")
	keeping := s.Team(viewer).Keeping
	got, err := keeping.Retention(t.Context())
	if want := (web.Retention{Records: 2, Originals: 90}); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	own := web.Retention{Counters: 700, Records: 400, Originals: 30}
	if err := keeping.SetRetention(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	if got, err := keeping.Retention(t.Context()); err != nil || got != own {
		t.Errorf("got %+v and %v, want %+v", got, err, own)
	}
}
