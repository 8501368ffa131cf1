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

// runAxe runs every rule: those of WCAG 2.2, of which axe leaves the size of targets
// out unless it is asked, and its good practices. Contrast, which costs most, is left
// out where the same colours were checked before.
const runAxe = `axe.run(document, { resultTypes: ["violations"],
	rules: { "target-size": { enabled: true }, "color-contrast": { enabled: %t } } }).then(({ violations }) =>
	violations.map(({ id, impact, help, nodes }) => ({ ID: id, Impact: impact, Help: help,
		Nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => ({ HTML: html.slice(0, 300), FailureSummary: failureSummary })) })))`

// axe returns what axe has to say against the present page, about its colours too or
// not.
func (b *tab) axe(colours bool) []violation {
	b.t.Helper()
	if !read(b, evaluate[bool](`"axe" in window`)) {
		script, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
		if err != nil {
			b.t.Fatalf("axe is missing (scripts/need-browser.sh installs it): %v", err)
		}
		b.do(chromedp.Evaluate[chromedp.Void](string(script)))
	}
	return read(b, evaluate[[]violation](fmt.Sprintf(runAxe, colours)))
}
