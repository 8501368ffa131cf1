// Package ui holds what pages are made of: tables, forms, charts, pagers, periods, and the
// formatting of numbers and times. It knows nothing of the service.
package ui

import (
	"net/url"
	"slices"
	"strings"
)

// Table is a table as every page shows it, and as it can be had as CSV.
type Table struct {
	// ID names the table in the address of its CSV; it is a word.
	ID string
	// Caption says what the table shows, for those who do not see the page.
	Caption string
	Columns []Column
	Rows    [][]Cell
	// CSV is the address of the table as a file, "" where there is none.
	CSV string
	// Empty is shown instead of a table without rows.
	Empty Empty
	// More is how many rows there are that the table does not show.
	More int
}

// Density says how much room the table needs beside the screen: "" for few columns, some or
// many. With less it is shown as cards.
func (t Table) Density() string {
	const some, many = 5, 8 // columns
	switch n := len(t.Columns); {
	case n > many:
		return "many"
	case n > some:
		return "some"
	}
	return ""
}

// Column is the head of a column.
type Column struct {
	Title string
	// Numeric columns stand on the right.
	Numeric bool
	// Sort leads to the page ordered by this column, "" where it cannot be;
	// Order is ascending, descending or "".
	Sort, Order string
	// Wide columns may break their lines, the others do not.
	Wide bool
	// Note heads the notes of the column in a file, where they are a column of
	// their own; "" where they say nothing that the cell does not.
	Note string
}

// Empty says why there is nothing, and what to do about it.
type Empty struct {
	Title, Advice string
	Action        Link
}

// OfferedTo returns it without its action where the reader may not take it.
func (e Empty) OfferedTo(may bool) Empty {
	if !may {
		e.Action = Link{}
	}
	return e
}

// Link is a text that leads somewhere.
type Link struct{ Text, Href string }

// Without returns the table without the column of a title, which says the same in
// each row.
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

// Lines returns the table as the lines of a file, the heads first. Notes have a
// column of their own, and buttons none.
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
			lines[n+1] = append(lines[n+1], defuse(row[i].Note))
		}
	}
	return lines
}

// defuse keeps a spreadsheet from reading text from outside as a formula.
func defuse(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

// Sorting makes the heads of columns that a page can be ordered by.
type Sorting struct {
	Path  string
	query url.Values
	By    string // a word, with "-" before it for descending
}

// NewSorting reads the order from the query, or takes the first word.
func NewSorting(path string, query url.Values, words ...string) Sorting {
	s := Sorting{Path: path, query: query, By: words[0]}
	for _, word := range words {
		if asked := query.Get("sort"); strings.TrimPrefix(asked, "-") == strings.TrimPrefix(word, "-") {
			s.By = asked
		}
	}
	return s
}

// Column returns the head of a column that is ordered by word.
func (s Sorting) Column(title, word string, numeric bool) Column {
	column := Column{Title: title, Numeric: numeric}
	next := word
	if numeric {
		next = "-" + word // the largest first
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

// WithQuery returns the path with the query after some changes, given as names
// and values; "" takes a name out.
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
