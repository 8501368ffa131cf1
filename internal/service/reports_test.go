package service_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
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
		if _, err := team.SetCountedAll(t.Context(), service.Selection{Reporter: "receiver.example"}, true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImportIsAuditedWithItsFirstReports imports nothing, then reports in two steps.
func TestImportIsAuditedWithItsFirstReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	importer, err := w.service.Team(w.team.ID, service.CommandLine()).Import("old reports")
	w.must(err)
	day := dmarcd.DayOf(time.Now()) - 2
	for i, deliveries := range [][]*dmarcd.Delivery{
		nil,
		{storetest.Delivery(storetest.Aggregate("2", ours, day, storetest.Passed(ours, 1)))},
		{storetest.Delivery(storetest.Aggregate("3", ours, day, storetest.Passed(ours, 1)))},
	} {
		if _, err := importer.Receive(t.Context(), deliveries); err != nil {
			t.Fatal(err)
		}
		entries := w.entries()
		got := len(slices.DeleteFunc(entries, func(e dmarcd.AuditEntry) bool { return e.Action != "report.import" || e.Target != "old reports" }))
		if want := min(i, 1); got != want {
			t.Errorf("after step %d: got %d audit entries, want %d", i, got, want)
		}
	}
}
