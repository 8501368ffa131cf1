package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// violation is a rule of axe that a page breaks, with the elements that do.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "axe: %s (%s): %s", v.ID, v.Impact, v.Help)
	for _, node := range v.Nodes {
		fmt.Fprintf(&b, "\n\t%s\n\t\t%s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", " "))
	}
	return b.String()
}

// rules are the options of a run of axe that choose its rules.
type rules string

const (
	// allRules are the rules of WCAG 2.2, including target size, which axe skips by default,
	// and its best practices.
	allRules rules = `rules: { "target-size": { enabled: true } }`
	// colourRules are those that depend on colours. Contrast costs more than all others.
	colourRules rules = `runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] }`
	// shapeRules are all others.
	shapeRules rules = `rules: { "target-size": { enabled: true }, "color-contrast": { enabled: false }, "link-in-text-block": { enabled: false } }`
	// positionRules are those that depend on where elements are, and how large. The others depend
	// on the document, and on which of its elements are hidden.
	positionRules rules = `runOnly: { type: "rule", values: ["target-size", "scrollable-region-focusable"] }`
	// mailRules are the rules for a message, which is not a page.
	mailRules rules = `runOnly: { type: "rule", values: ["color-contrast", "image-alt"] }`
)

const runAxe = `axe.run(document, { resultTypes: ["violations"], %s }).then(({ violations }) =>
	violations.map(({ id, impact, help, nodes }) => ({ ID: id, Impact: impact, Help: help,
		Nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => ({ HTML: html.slice(0, 300), FailureSummary: failureSummary })) })))`

const (
	// noteShown notes which elements the page shows.
	noteShown = `(window.noted = ` + shownElements + `).size`
	// sameShown reports whether it shows those that were noted.
	sameShown = shownElements + `.symmetricDifference(window.noted).size === 0`
	// shownElements are those that are not hidden. Left out are the heads of tables, which
	// cards do not have, and what is hidden from screen readers in any case.
	shownElements = `new Set([...document.querySelectorAll("body *:not(thead th, thead th *, [aria-hidden=true], [aria-hidden=true] *)")]
		.filter((element) => element.checkVisibility({ visibilityProperty: true })))`
)

// axe returns the rules that the present page breaks.
func (b *tab) axe(chosen rules) []violation {
	b.t.Helper()
	if !read(b, evaluate[bool](`"axe" in window`)) {
		script, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			b.t.Fatalf("axe is missing (scripts/need-browser.sh installs it): %v", err)
		}
		b.do(chromedp.Evaluate[chromedp.Void](string(script)))
	}
	return read(b, evaluate[[]violation](fmt.Sprintf(runAxe, chosen)))
}
