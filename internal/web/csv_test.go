package web_test

import (
	"encoding/csv"
	"regexp"
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
	want := "example.com,B,quarantine,150528,0.9700"
	if got := strings.Join(rows[1][:5], ","); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
