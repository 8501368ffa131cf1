package web_test

import (
	"encoding/csv"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// csvLink matches the links to CSV files.
var csvLink = regexp.MustCompile(`href="(/app/[^"]*csv=[^"]*)"`)

// table requests a table as CSV.
func (s *site) table(t *testing.T, path string) [][]string {
	t.Helper()
	w := s.get(operator, path)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || got != "text/csv; charset=utf-8" {
		t.Fatalf("%s: got %d as %q, want a CSV file", path, w.Code, got)
	}
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: got %d rows and %v, want a head", path, len(rows), err)
	}
	return rows
}

// column returns the values below a header.
func column(t *testing.T, rows [][]string, head string) []string {
	t.Helper()
	n := slices.Index(rows[0], head)
	if n < 0 {
		t.Fatalf("got the heads %q, want %q among them", rows[0], head)
	}
	var fields []string
	for _, row := range rows[1:] {
		fields = append(fields, row[n])
	}
	return fields
}

// TestCSV follows every CSV link on every page, and checks that each table has one.
func TestCSV(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	found := map[string]bool{}
	for _, page := range s.allPages() {
		if page.user != operator {
			continue
		}
		body := s.get(page.user, page.path).Body.String()
		for i, table := range strings.Split(body, "<table>")[1:] {
			if !csvLink.MatchString(table) {
				t.Errorf("%s: got table %d without a link to a file, want one behind it", page.path, i+1)
			}
		}
		for _, link := range csvLink.FindAllStringSubmatch(body, -1) {
			path := html.UnescapeString(link[1])
			if found[path] {
				continue
			}
			found[path] = true
			for _, row := range s.table(t, path) {
				for _, field := range row {
					if strings.HasPrefix(field, "=") {
						t.Errorf("%s: got the field %q, want no formula", path, field)
					}
				}
			}
		}
	}
	if want := 20; len(found) < want {
		t.Errorf("got %d tables as files, want at least %d", len(found), want)
	}
}

// TestNumbersAgree compares the numbers of the same mail on all pages.
func TestNumbersAgree(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const all, passed = 12345 + 40 + 3 + 12, 12345
	sum := func(path string, heads ...string) (total int64) {
		t.Helper()
		rows := s.table(t, path)
		for _, head := range heads {
			for _, field := range column(t, rows, head) {
				n, err := strconv.ParseInt(field, 10, 64)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				total += n
			}
		}
		return total
	}
	byClass := []string{"Yours, passes", "Yours, fails", "Forwarded", "Spoofed", "Unknown"}
	for _, row := range []struct {
		path  string
		heads []string
		want  int64
	}{
		{"/app/?csv=messages", byClass, all},
		{"/app/?csv=messages", byClass[:1], passed},
		{"/app/domains/example.com?csv=messages", byClass, all},
		{"/app/domains/example.com?csv=messages", byClass[:1], passed},
		{"/app/domains/example.com?csv=disposition", []string{"Delivered", "Spam folder", "Rejected"}, all},
		{"/app/senders?csv=senders", []string{"Messages"}, all},
		{"/app/senders?csv=senders&group=address", []string{"Messages"}, all},
		{"/app/domains/example.com/senders?csv=flow", []string{"Messages"}, all},
		{"/app/senders/header_from/example.com?csv=records", []string{"Messages"}, all},
		{"/app/senders/header_from/example.com?csv=messages", []string{"Passes DMARC"}, passed},
		{"/app/reports?kind=aggregate&csv=reports", []string{"Messages"}, all},
	} {
		if got := sum(row.path, row.heads...); got != row.want {
			t.Errorf("%s: got %d messages, want %d", row.path, got, row.want)
		}
	}
	fields := column(t, s.table(t, "/app/senders?csv=senders"), "Passes DMARC")
	if want := strconv.FormatFloat(1, 'f', 4, 64); fields[0] != want {
		t.Errorf("got a share of %s, want %s", fields[0], want)
	}
}

// TestFilesAreWhole downloads lists that are longer than a page.
func TestFilesAreWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const many = 60 // more than a page of reports
	day := dmarcd.DayOf(now) - 2
	var counts []dmarcd.DayCount
	for range many {
		counts = append(counts, dmarcd.DayCount{Day: day, Summary: dmarcd.Summary{Compliant: 1}})
	}
	storetest.Count(t, s.store.Team(s.team), sampleDomain, counts...)
	for range 120 { // more than a page of the audit log
		s.post(editor, "/app/domains/example.com/purpose", map[string][]string{"purpose": {"personal"}})
	}
	for _, row := range []struct {
		path  string
		least int
	}{
		{"/app/reports?csv=reports&kind=aggregate", many + 2},
		{"/app/settings/audit?csv=audit", 120},
		{"/app/senders/header_from/example.com?csv=records", many + 4},
	} {
		if got := len(s.table(t, row.path)) - 1; got < row.least {
			t.Errorf("%s: got %d rows, want all of at least %d", row.path, got, row.least)
		}
	}
	if body := s.body(t, operator, "/app/reports"); strings.Count(body, "<tr>") > 52 || !strings.Contains(body, "after=") {
		t.Error("got a page without a next one, want a part of the list")
	}
}

func TestNotesInCSV(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	report := "/app/reports/" + s.aggregate.String() + "?csv=records"
	for _, row := range []struct{ path, head, field string }{
		{"/app/reports?csv=reports", "Report id", "2026-11-14.0123456789"},
		{report, "Envelope domain", "bounce.example.com"},
		{report, "Reasons", "local_policy"},
		{"/app/domains/example.com/dns?csv=findings", "Record", "v=DMARC1"},
	} {
		if all := strings.Join(column(t, s.table(t, row.path), row.head), "\n"); !strings.Contains(all, row.field) {
			t.Errorf("%s: got %q under %q, want %q", row.path, all, row.head, row.field)
		}
	}
}

func TestButtonsAreNotInCSV(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if heads := s.table(t, "/app/settings/tokens?csv=tokens")[0]; slices.Contains(heads, "Actions") {
		t.Errorf("got the heads %q, want none of buttons", heads)
	}
}
