package web_test

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// csvLink finds the links to tables as files.
var csvLink = regexp.MustCompile(`href="(/app/[^"]*csv=[^"]*)"`)

// TestCSV follows every link to a table as a file, from every page.
func TestCSV(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	pagesOfAll := newWeb(t, &backend{viewer: sampleViewer()})
	for _, page := range pages {
		if page.empty {
			continue
		}
		body := get(t, pagesOfAll, page.path).Body.String()
		for _, link := range csvLink.FindAllStringSubmatch(body, -1) {
			path := strings.ReplaceAll(link[1], "&amp;", "&")
			if found[path] {
				continue
			}
			found[path] = true
			w := get(t, pagesOfAll, path)
			if got := w.Header().Get("Content-Type"); w.Code != 200 || got != "text/csv; charset=utf-8" {
				t.Errorf("%s: got %d as %q, want a CSV file", path, w.Code, got)
				continue
			}
			rows, err := csv.NewReader(w.Body).ReadAll()
			if err != nil || len(rows) < 2 {
				t.Errorf("%s: got %d rows and %v, want a head and rows", path, len(rows), err)
			}
			for _, field := range strings.Fields(strings.Join(flat(rows), " ")) {
				if strings.HasPrefix(field, "=") {
					t.Errorf("%s: got the field %q, want no formula", path, field)
				}
			}
		}
	}
	if want := 20; len(found) < want {
		t.Errorf("got %d tables as files, want at least %d", len(found), want)
	}
}

func flat(rows [][]string) []string {
	var fields []string
	for _, row := range rows {
		fields = append(fields, row...)
	}
	return fields
}

func TestNumbersInCSV(t *testing.T) {
	t.Parallel()
	w := get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/?csv=domains")
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := "example.com,,B,quarantine,150528,0.9700"
	if got := strings.Join(rows[1][:6], ","); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEveryTableIsAFile looks for a link to a file behind each table.
func TestEveryTableIsAFile(t *testing.T) {
	t.Parallel()
	shown := newWeb(t, &backend{viewer: sampleViewer()})
	for _, page := range pages {
		if page.empty {
			continue
		}
		for i, table := range strings.Split(get(t, shown, page.path).Body.String(), "<table>")[1:] {
			if !csvLink.MatchString(table) {
				t.Errorf("%s: got table %d without a link to a file, want one behind it", page.path, i+1)
			}
		}
	}
}

// TestFilesAreWhole asks for lists of which a page shows a part.
func TestFilesAreWhole(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/app/domains/example.com/history?csv=changes",
		"/app/reports/rejected?csv=rejected",
		"/app/settings/audit?csv=audit",
		"/app/sources/network/known?csv=records",
		"/app/reports/rep_1?csv=records",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			rows := func(b *backend, path string) int {
				b.viewer = sampleViewer()
				return strings.Count(get(t, newWeb(t, b), path).Body.String(), "\n") - 1
			}
			part := rows(&backend{}, path)
			for _, cursor := range []string{"", "&after=second"} {
				if got := rows(&backend{parts: true}, path+cursor); part == 0 || got != 2*part {
					t.Errorf("got %d rows, want %d: both parts", got, 2*part)
				}
			}
		})
	}
}

func TestNotesInCSV(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ path, head, field string }{
		{"/app/reports?csv=reports", "Report id", "2026-11-14.0123456789"},
		{"/app/sources?csv=sources", "Detail", "marketing"},
		{"/app/reports/rep_1?csv=records", "Envelope domain", "bounce.example.com"},
		{"/app/reports/rep_1?csv=records", "Reasons", "local_policy"},
		{"/app/domains/example.com/check?csv=findings", "Record", "v=DMARC1"},
	} {
		t.Run(row.path+" "+row.head, func(t *testing.T) {
			t.Parallel()
			rows, err := csv.NewReader(get(t, newWeb(t, &backend{viewer: sampleViewer()}), row.path).Body).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			column := slices.Index(rows[0], row.head)
			if column < 0 {
				t.Fatalf("got the heads %q, want %q among them", rows[0], row.head)
			}
			var found []string
			for _, fields := range rows[1:] {
				found = append(found, fields[column])
			}
			if all := strings.Join(found, "\n"); !strings.Contains(all, row.field) {
				t.Errorf("got %q under %q, want %q", found, row.head, row.field)
			}
		})
	}
}

func TestButtonsAreNotInCSV(t *testing.T) {
	t.Parallel()
	body := get(t, newWeb(t, &backend{viewer: sampleViewer()}), "/app/settings/tokens?csv=tokens").Body.String()
	if head, _, _ := strings.Cut(body, "\n"); strings.Contains(head, "Actions") {
		t.Errorf("got the heads %q, want none of buttons", head)
	}
}
