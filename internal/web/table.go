package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/wire"
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

// offeredTo returns it without its action where the reader may not take it.
func (e Empty) offeredTo(may bool) Empty {
	if !may {
		e.Action = Link{}
	}
	return e
}

// CellKind says how a cell is shown.
type CellKind string

// The kinds of cells.
const (
	CellText    CellKind = "text"
	CellCode    CellKind = "code" // a name or address, which can be copied
	CellNumber  CellKind = "number"
	CellBadge   CellKind = "badge"
	CellGrade   CellKind = "grade"
	CellTime    CellKind = "time"
	CellShare   CellKind = "share" // a bar and a percentage
	CellSpark   CellKind = "spark"
	CellActions CellKind = "actions" // buttons
)

// Cell is one field of a table.
type Cell struct {
	Kind CellKind
	// Text is what is read, Note stands smaller below it, after the word Before.
	Text, Note, Before string
	// Href makes a link of the text; Copy offers to copy it.
	Href string
	Copy bool
	// Tone colours a badge; see tone.
	Tone string
	// Number is that of a number, and the part of a share; Whole is what it is
	// a share of.
	Number, Whole int64
	Time          time.Time
	Series        []int64
	Actions       []Action
}

// Action is a button that sends a form.
type Action struct {
	Label string
	// Path takes the form, by POST.
	Path string
	// Name and Value are the only field of the form; "" for none.
	Name, Value string
	// Danger marks what cannot be taken back; Question is then asked before.
	Danger   bool
	Question string
}

func text(s string) Cell             { return Cell{Kind: CellText, Text: s} }
func link(s, href string) Cell       { return Cell{Kind: CellText, Text: s, Href: href} }
func code(s string) Cell             { return Cell{Kind: CellCode, Text: s} }
func count(n int64) Cell             { return Cell{Kind: CellNumber, Number: n} }
func badge(word string) Cell         { return Cell{Kind: CellBadge, Text: word, Tone: tone(word)} }
func gradeCell(grade string) Cell    { return Cell{Kind: CellGrade, Text: grade, Tone: gradeTone(grade)} }
func at(t time.Time) Cell            { return Cell{Kind: CellTime, Time: t} }
func share(part, whole int64) Cell   { return Cell{Kind: CellShare, Number: part, Whole: whole} }
func spark(series []int64) Cell      { return Cell{Kind: CellSpark, Series: series} }
func actions(buttons ...Action) Cell { return Cell{Kind: CellActions, Actions: buttons} }

// linked makes a link of a cell.
func (c Cell) linked(href string) Cell {
	c.Href = href
	return c
}

// copyable offers to copy a cell.
func (c Cell) copyable() Cell {
	c.Copy = true
	return c
}

// noted puts a note below a cell.
func (c Cell) noted(note string) Cell {
	c.Note = note
	return c
}

// Numeric reports whether the cell stands on the right.
func (c Cell) Numeric() bool { return c.Kind == CellNumber || c.Kind == CellShare }

// plain returns the cell as a field of a CSV file.
func (c Cell) plain() string {
	switch c.Kind {
	case CellNumber:
		return strconv.FormatInt(c.Number, 10)
	case CellShare:
		if c.Whole == 0 {
			return ""
		}
		return strconv.FormatFloat(float64(c.Number)/float64(c.Whole), 'f', 4, 64)
	case CellTime:
		if c.Time.IsZero() {
			return ""
		}
		return wire.Time(c.Time)
	case CellSpark:
		fields := make([]string, len(c.Series))
		for i, n := range c.Series {
			fields[i] = strconv.FormatInt(n, 10)
		}
		return strings.Join(fields, " ")
	case CellActions:
		return ""
	}
	return defuse(c.Text)
}

// without returns the table without the column of a title, which says the same in
// each row.
func (t Table) without(title string) Table {
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

// lines returns the table as the lines of a file, the heads first. Notes have a
// column of their own, and buttons none.
func (t Table) lines() [][]string {
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

// defuse keeps a spreadsheet from taking text of a stranger for a formula.
func defuse(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}

// sorting makes the heads of columns that a page can be ordered by.
type sorting struct {
	path  string
	query url.Values
	by    string // a word, with "-" before it for descending
}

// newSorting reads the order from the query, or takes the first word.
func newSorting(path string, query url.Values, words ...string) sorting {
	s := sorting{path: path, query: query, by: words[0]}
	for _, word := range words {
		if asked := query.Get("sort"); strings.TrimPrefix(asked, "-") == strings.TrimPrefix(word, "-") {
			s.by = asked
		}
	}
	return s
}

// column returns the head of a column that is ordered by word.
func (s sorting) column(title, word string, numeric bool) Column {
	column := Column{Title: title, Numeric: numeric}
	next := word
	if numeric {
		next = "-" + word // the largest first
	}
	switch s.by {
	case word:
		column.Order, next = "ascending", "-"+word
	case "-" + word:
		column.Order, next = "descending", word
	}
	column.Sort = withQuery(s.path, s.query, "sort", next, "page", "", "after", "")
	return column
}

// withQuery returns the path with the query after some changes, given as names
// and values; "" takes a name out.
func withQuery(path string, query url.Values, changes ...string) string {
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
