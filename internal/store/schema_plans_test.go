package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/rollup"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestReadsUseIndexes checks that reads of pages and of the API use indexes, so that
// their time does not depend on the data of other teams.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	in := newInbox(t, storetest.SQLite(t))
	in.add(ours)
	id := in.receive(report("1", ours, storetest.Passed(ours, 3000)))[0].ID
	buildRollups(t, in.store)
	day, ctx := today, t.Context()
	some := dmarcd.Days{From: &day, To: &day}
	reads := map[string]func() error{
		"a domain's sum":          func() error { _, err := in.team.DomainSummary(ctx, ours, dmarcd.Days{}); return err },
		"a domain's sum by day":   func() error { _, err := in.team.DomainSummary(ctx, ours, some); return err },
		"the team's sum":          func() error { _, err := in.team.Summary(ctx, some); return err },
		"the team's days":         func() error { _, err := in.team.Daily(ctx, some, 10); return err },
		"a domain's days":         func() error { _, err := in.team.DomainDaily(ctx, ours, some, 10); return err },
		"the days of all domains": func() error { _, err := in.team.DailyByDomain(ctx, some, store.DailyCursor{}, 10); return err },
		"the reports":             func() error { _, err := in.team.Reports(ctx, store.ReportFilter{}, 0, 10); return err },
		"the reports of a domain": func() error { _, err := in.team.Reports(ctx, store.ReportFilter{Domain: ours}, 0, 10); return err },
		"the reports of some days": func() error {
			_, err := in.team.Reports(ctx, store.ReportFilter{Days: some, Unclaimed: true}, 0, 10)
			return err
		},
		"a report":  func() error { _, err := in.team.Report(ctx, id); return err },
		"records":   func() error { _, _, err := in.team.Records(ctx, id, store.RecordCursor{Begun: true}, 10); return err },
		"originals": func() error { _, err := in.team.ReportOriginal(ctx, id); return err },
		"who sent":  func() error { return in.team.Scan(ctx, "", some, atOnce, func(rollup.Part) error { return nil }) },
		"events":    func() error { _, err := in.team.EventsSince(ctx, store.EventFilter{}, 1, 10); return err },
		"rejected":  func() error { _, err := in.team.Rejected(ctx, 0, 10); return err },
	}
	for name, read := range reads {
		var failed error
		plan := musttest.Get(in.store.Explain(ctx, func() { failed = read() }))(t)
		in.must(failed)
		if len(plan) == 0 {
			t.Errorf("%s: nothing was read", name)
		}
		for _, line := range plan {
			// Rows in index order need no complete scan for sorting.
			if strings.HasPrefix(line, "SCAN") || strings.HasPrefix(line, "USE TEMP B-TREE") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

// TestQueriesUseTheirIndex names the index of queries that run every minute, and of those that
// would otherwise read all reports of a team.
func TestQueriesUseTheirIndex(t *testing.T) {
	t.Parallel()
	in := newInbox(t, storetest.SQLite(t))
	reports := func(filter store.ReportFilter) func() error {
		return func() error { _, err := in.team.Reports(t.Context(), filter, 0, 10); return err }
	}
	for _, tt := range []struct {
		name, index string
		step        func() error
	}{
		{"rollups", "INDEX team_days_not_in_rollup", func() error { _, err := in.store.BuildRollups(t.Context()); return err }},
		{"all domains to scan", "USING PRIMARY KEY (team_id=? AND domain_id=?)", func() error {
			_, err := in.team.ScannedMail(t.Context(), dmarcd.AlertScan{Full: true}, 10)
			return err
		}},
		{"changed domains to scan", "INDEX mail_days_changed (team_id=? AND changed_at>?)", func() error {
			_, err := in.team.ScannedMail(t.Context(), dmarcd.AlertScan{}, 10)
			return err
		}},
		{"reports of some days", "INDEX reports_of_team (team_id=? AND id<?)", reports(store.ReportFilter{Days: daysOf(1, 2)})},
		{"reports of a reporter", "INDEX reports_of_team (team_id=? AND id<?)", reports(store.ReportFilter{Days: daysOf(1, 2), OrganizationPart: "x"})},
		{"a report by its id", "INDEX reports_of_external_id (team_id=? AND external_id=?", reports(store.ReportFilter{ExternalID: "x"})},
		{"records after a cursor", "records USING PRIMARY KEY (team_id=? AND report_id=? AND (share,n)>(?,?))", func() error {
			_, _, err := in.team.Records(t.Context(), 1, store.RecordCursor{Begun: true}, 10)
			return err
		}},
		{"purge", "INDEX domains_deleted", func() error { _, err := in.store.Purge(t.Context()); return err }},
		{"lag of checks", "COVERING INDEX domains_due ", func() error { _, err := in.store.CheckLag(t.Context()); return err }},
		{"due checks", "COVERING INDEX domains_due ", func() error { _, err := in.store.DueTeams(t.Context()); return err }},
	} {
		var failed error
		plan := musttest.Get(in.store.Explain(t.Context(), func() { failed = tt.step() }))(t)
		in.must(failed)
		if len(plan) == 0 || !slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, tt.index) }) {
			t.Errorf("%s: got %q, want %s", tt.name, plan, tt.index)
		}
	}
}
