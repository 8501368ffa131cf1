package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

const (
	pageWidth = 80
	// fullFindings is the number of findings that are explained; the others take one line
	// each, so that a broken domain fits on one screen.
	fullFindings = 3
	// treeLines limits the SPF tree without --verbose.
	treeLines = 9
)

// ANSI colours.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	blue   = "\x1b[36m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// colours reports whether output may be coloured.
func (p *program) colours(out io.Writer) bool {
	return isTerminal(out) &&
		!slices.ContainsFunc(p.environ, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" })
}

// checkPage prints checks as text.
type checkPage struct {
	out     io.Writer
	colours bool
	verbose bool
	some    bool
	err     error
}

func (c *checkPage) end() error { return nil }

// print prints one check.
func (c *checkPage) print(check facts.Check) error {
	if c.some {
		c.line("")
	}
	c.some = true
	domain := check.Facts.Domain
	grade := "grade " + check.Grade
	if check.Grade == "" {
		grade = "no grade"
	}
	gap := max(pageWidth-len(domain)-len(grade), 2)
	c.line(c.paint(bold, domain) + strings.Repeat(" ", gap) + c.paint(gradeColour(check.Grade)+bold, grade))
	c.wrap(conclusion(check), "", "")

	serious, rest := c.divide(check.Findings)
	for _, f := range serious {
		c.finding(f)
	}
	if len(rest) > 0 {
		c.line("")
	}
	for _, f := range rest {
		c.brief(f)
	}
	c.line("")
	for _, row := range partRows(*check.Facts) {
		c.line(fmt.Sprintf("  %-8s %-12s %s", row[0], row[1], cutLine(row[2], pageWidth-24)))
	}
	c.spfTree(check)
	c.ending(check, serious, rest)
	return c.err
}

// divide returns the findings to explain in full and those to list.
func (c *checkPage) divide(findings []dmarcd.Finding) (explain, name []dmarcd.Finding) {
	for _, f := range findings {
		serious := f.Level == dmarcd.LevelError || f.Level == dmarcd.LevelWarning
		switch {
		case c.verbose && f.Level != dmarcd.LevelGood, serious && len(explain) < fullFindings:
			explain = append(explain, f)
		case c.verbose, serious:
			name = append(name, f)
		}
	}
	return explain, name
}

// finding prints a finding in full. The record is on its own line, unbroken and flush
// left, for copying.
func (c *checkPage) finding(f dmarcd.Finding) {
	c.line("")
	c.line(c.paint(levelColour(f.Level)+bold, strings.ToUpper(string(f.Level))) + "  " + f.ID + "  (" + f.RFC + ")")
	c.wrap(f.What, "  ", "  ")
	c.wrap(f.Why, "  why  ", "       ")
	if f.Fix != "" {
		c.wrap(f.Fix, "  fix  ", "       ")
	}
	if record := f.Record.String(); record != "" {
		c.line(c.paint(bold, printable(record)))
	}
}

// brief prints a finding in one line.
func (c *checkPage) brief(f dmarcd.Finding) {
	level := fmt.Sprintf("%-8s", f.Level)
	c.line(c.paint(levelColour(f.Level), level) + cutLine(f.What, pageWidth-len(level)))
}

// spfTree prints the terms with the running lookup count if it is relevant.
func (c *checkPage) spfTree(check facts.Check) {
	f := check.Facts.SPF
	matters := slices.ContainsFunc(check.Findings, func(f dmarcd.Finding) bool {
		return strings.HasPrefix(f.ID, "spf.") && (f.Level == dmarcd.LevelError || f.Level == dmarcd.LevelWarning)
	})
	if len(f.Tree) == 0 || !matters && !c.verbose {
		return
	}
	c.line("")
	c.line("SPF lookups with the running count (limit 10):")
	lines := treeOf(f.Tree, "  ", nil)
	shown := len(lines)
	if !c.verbose && shown > treeLines {
		shown = treeLines - 1
	}
	for _, line := range lines[:shown] {
		c.line(line)
	}
	if shown < len(lines) {
		c.line(fmt.Sprintf("        ... %d more; --verbose shows all", len(lines)-shown))
	}
}

// treeOf returns the lines of a tree.
func treeOf(terms []facts.SPFTerm, indent string, lines []string) []string {
	for _, t := range terms {
		count := ""
		if t.Cost > 0 {
			// The count on reaching the term; nested terms continue it.
			count = strconv.Itoa(t.Lookups - t.Cost + 1)
		}
		text := t.Term
		for _, more := range []string{t.Provider, t.Note} {
			if more != "" {
				text += " (" + more + ")"
			}
		}
		lines = append(lines, cutLine(fmt.Sprintf("%4s%s%s", count, indent, text), pageWidth))
		lines = treeOf(t.Terms, indent+"  ", lines)
	}
	return lines
}

// ending prints the next step, unless already explained, and the number of omitted
// findings.
func (c *checkPage) ending(check facts.Check, explained, named []dmarcd.Finding) {
	shown := len(explained) + len(named)
	if next := check.Next; next != nil && !slices.Contains(explained, *next) {
		c.finding(*next)
		if !slices.Contains(named, *next) {
			shown++
		}
	}
	c.line("")
	if check.Next != nil {
		c.line(c.paint(bold, "Next step: ") + "fix " + check.Next.ID + ".")
	}
	switch left := len(check.Findings) - shown; {
	case left == 1:
		c.line("1 more finding is informational; --verbose shows all.")
	case left > 1:
		c.line(fmt.Sprintf("%d more findings are informational; --verbose shows all.", left))
	}
}

// wrap prints text wrapped to the page width.
func (c *checkPage) wrap(text, first, indent string) {
	line := first
	width := visibleWidth(first)
	fresh := true
	for word := range strings.FieldsSeq(printable(text)) {
		n := utf8.RuneCountInString(word)
		if !fresh && width+1+n > pageWidth {
			c.line(line)
			line, width, fresh = indent, visibleWidth(indent), true
		}
		if !fresh {
			line, width = line+" ", width+1
		}
		line, width, fresh = line+word, width+n, false
	}
	c.line(line)
}

// line prints a line and records the first error.
func (c *checkPage) line(text string) {
	if c.err == nil {
		_, c.err = io.WriteString(c.out, strings.TrimRight(text, " ")+"\n")
	}
}

func (c *checkPage) paint(colour, text string) string {
	if !c.colours {
		return text
	}
	return colour + text + plain
}

// visibleWidth returns the width of text without colours.
func visibleWidth(text string) int {
	text = strings.NewReplacer(red, "", green, "", yellow, "", blue, "", bold, "", plain, "").Replace(text)
	return utf8.RuneCountInString(text)
}

// printable replaces terminal control characters: records may contain any octet.
func printable(text string) string {
	if isPrintableASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

func isPrintableASCII(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// cutLine truncates text to width.
func cutLine(text string, width int) string {
	text = printable(text)
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

func gradeColour(grade string) string {
	switch grade {
	case "A+", "A", "B":
		return green
	case "C", "D":
		return yellow
	}
	return red
}

func levelColour(level dmarcd.Level) string {
	switch level {
	case dmarcd.LevelError:
		return red
	case dmarcd.LevelWarning:
		return yellow
	case dmarcd.LevelGood:
		return green
	}
	return blue
}

// checkLines prints each check in one line.
type checkLines struct{ *checkPage }

func (c *checkLines) print(check facts.Check) error {
	grade := cmp.Or(check.Grade, "?")
	const column = 32
	domain := fmt.Sprintf("%-*s ", column, check.Facts.Domain)
	shown := ""
	if width := pageWidth - 3 - len(domain); width > 0 { // the longest names leave no space
		shown = cutLine(conclusion(check), width)
	}
	c.line(c.paint(gradeColour(check.Grade), fmt.Sprintf("%-3s", grade)) + domain + shown)
	return c.err
}
