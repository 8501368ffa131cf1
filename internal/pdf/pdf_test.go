package pdf_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/pdf"
)

var pages = regexp.MustCompile(`/Type /Page\n`)

func document(rows int) pdf.Document {
	table := pdf.Table{Columns: []pdf.Column{{Title: "Name", Width: 3}, {Title: "Number", Width: 1, Numbers: true}}}
	for i := range rows {
		table.Rows = append(table.Rows, []string{fmt.Sprintf("row %d", i), "7"})
	}
	return pdf.Document{
		Title: "Zürich", Conclusion: "All is well.", Created: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC),
		Figures: []pdf.Figure{{Label: "Messages", Value: "12"}}, Notes: []string{"The end."},
		Sections: []pdf.Section{
			{Title: "Chart", Chart: &pdf.Chart{Series: []pdf.Series{{Name: "passes"}, {Name: "fails"}}, Bars: [][]int64{{3, 1}, {0, 0}, {5, 0}}, First: "a", Last: "b", Most: "5"}},
			{Title: "Table", Table: &table},
		},
	}
}

// TestDocumentIsReproducible draws equal files, on as many pages as they need.
func TestDocumentIsReproducible(t *testing.T) {
	t.Parallel()
	for rows, want := range map[int]int{3: 1, 100: 3} {
		file := musttest.Get(document(rows).Bytes())(t)
		if again := musttest.Get(document(rows).Bytes())(t); !bytes.Equal(file, again) {
			t.Errorf("%d rows: got different files", rows)
		}
		if got := len(pages.FindAll(file, -1)); got != want {
			t.Errorf("%d rows: got %d pages, want %d", rows, got, want)
		}
	}
}

// TestHostileTexts draws texts that no font has, that are too wide for a line, or that are not text.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", strings.Repeat("w", 5000), strings.Repeat("\u202e) Tj ET\n", 50), "\xff\xfe", "日本語 العربية 😀", "(\\) <</JS>>", "{nb}",
	} {
		d := document(1)
		d.Title, d.Lead, d.Conclusion, d.Notes = text, text, text, []string{text}
		d.Figures[0] = pdf.Figure{Label: text, Value: text, Note: text}
		d.Sections[0].Title, d.Sections[0].Chart.First, d.Sections[0].Chart.Series[0].Name = text, text, text
		d.Sections[1].Table.Rows[0][0] = text
		file, err := d.Bytes()
		if err != nil || !bytes.HasPrefix(file, []byte("%PDF-")) {
			t.Errorf("%.20q: got %d bytes, %v", text, len(file), err)
		}
	}
}
