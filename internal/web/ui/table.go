// Package ui contains the building blocks of pages: tables, forms, charts, pagers,
// periods, and the formatting of numbers and times. It does not depend on the service.
package ui

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// Table is a table on a page, and in a CSV file.
type Table struct {
	// ID is a word that identifies the table in the URL of its CSV.
	ID string
	// Caption describes the table for screen readers.
	Caption string
	Columns []Column
	Rows    [][]Cell
	// CSV is the URL of the table as a file, "" if there is none.
	CSV string
	// Empty replaces a table without rows.
	Empty Empty
	// More is the number of rows that are not shown.
	More int
}

// Density is the width that the table needs: "" for few columns, "some" or "many". On
// narrower screens it is shown as cards.
func (t Table) Density() string {
	const some, many = 4, 6 // columns
	switch n := len(t.Columns); {
	case n > many:
		return "many"
	case n > some:
		return "some"
	}
	return ""
}

// Column is the header of a column.
type Column struct {
	Title string
	// Numeric columns are right-aligned.
	Numeric bool
	// Sort is the URL sorted by this column, "" if it cannot be sorted; Order is
	// ascending, descending or "".
	Sort, Order string
	// Wide columns wrap their text.
	Wide bool
	// Note is the header for the notes of the column in a file, where they are a separate
	// column; "" omits them.
	Note string
}

// Empty explains why there is nothing, and what to do.
type Empty struct {
	Title, Advice string
	Action        Link
}

// OfferedTo returns e without its action unless may is true.
func (e Empty) OfferedTo(may bool) Empty {
	if !may {
		e.Action = Link{}
	}
	return e
}

// Link is a text with a URL.
type Link struct{ Text, Href string }

// Tab is one of several links; one of them is current.
type Tab struct {
	Link
	Current bool
}

// Without returns the table without the column that has a title.
func (t Table) Without(title string) Table {
	for i, column := range t.Columns {
		if column.Title != title {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), i, i+1)
		for n, row := range t.Rows {
			t.Rows[n] = slices.Delete(row, i, i+1)
		}
		return t
	}
	return t
}

// Lines returns the rows of a CSV file, starting with the headers. Notes have separate
// columns; buttons are omitted.
func (t Table) Lines() [][]string {
	lines := make([][]string, 1+len(t.Rows))
	for i, column := range t.Columns {
		if len(t.Rows) > 0 && t.Rows[0][i].Kind == CellActions {
			continue
		}
		lines[0] = append(lines[0], column.Title)
		for n, row := range t.Rows {
			lines[n+1] = append(lines[n+1], row[i].plain())
		}
		if column.Note == "" {
			continue
		}
		lines[0] = append(lines[0], column.Note)
		for n, row := range t.Rows {
			lines[n+1] = append(lines[n+1], wire.EscapeFormula(row[i].Note))
		}
	}
	return lines
}

// Sorting creates the headers of sortable columns.
type Sorting struct {
	Path  string
	query url.Values
	By    string // a word, with the prefix "-" for descending
}

// NewSorting returns the order in the query, by default the first word.
func NewSorting(path string, query url.Values, words ...string) Sorting {
	s := Sorting{Path: path, query: query, By: words[0]}
	for _, word := range words {
		if asked := query.Get("sort"); strings.TrimPrefix(asked, "-") == strings.TrimPrefix(word, "-") {
			s.By = asked
		}
	}
	return s
}

// Column returns the header of a column that is sorted by word.
func (s Sorting) Column(title, word string, numeric bool) Column {
	column := Column{Title: title, Numeric: numeric}
	next := word
	if numeric {
		next = "-" + word // largest first
	}
	switch s.By {
	case word:
		column.Order, next = "ascending", "-"+word
	case "-" + word:
		column.Order, next = "descending", word
	}
	column.Sort = WithQuery(s.Path, s.query, "sort", next, "page", "", "after", "")
	return column
}

// WithQuery returns the path with a changed query. changes are pairs of name and value;
// "" removes a name.
func WithQuery(path string, query url.Values, changes ...string) string {
	changed := url.Values{}
	for name, values := range query {
		if name != "done" && name != "csv" {
			changed[name] = values
		}
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if changes[i+1] == "" {
			changed.Del(changes[i])
		} else {
			changed.Set(changes[i], changes[i+1])
		}
	}
	if len(changed) == 0 {
		return path
	}
	return path + "?" + changed.Encode()
}
