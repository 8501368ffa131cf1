package main

import (
	"os"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestDocumentedPagesAreTheRealOnes compares the examples in docs/check.md with the real
// output; -update rewrites them.
func TestDocumentedPagesAreTheRealOnes(t *testing.T) {
	const file = "../../docs/check.md"
	document := musttest.Get(os.ReadFile(file))(t)
	page := string(document)
	for _, domain := range []string{"broken.example", "good.example"} {
		golden := musttest.Get(os.ReadFile("testdata/check-" + domain + ".golden"))(t)
		before, rest, found := strings.Cut(page, "$ dmarcd check "+domain+"\n")
		_, after, closed := strings.Cut(rest, "```")
		if !found || !closed {
			t.Fatalf("docs/check.md has no place for %s", domain)
		}
		page = before + "$ dmarcd check " + domain + "\n" + strings.TrimRight(string(golden), "\n") + "\n```" + after
	}
	goldentest.Check(t, file, page)
}
