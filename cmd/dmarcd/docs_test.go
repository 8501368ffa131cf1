package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedPagesAreTheRealOnes holds the terminals shown in docs/check.md
// to what the command prints.
func TestDocumentedPagesAreTheRealOnes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, domain := range []string{"broken.example", "good.example"} {
		golden, err := os.ReadFile("testdata/check-" + domain + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		want := "$ dmarcd check " + domain + "\n" + strings.TrimRight(string(golden), "\n") + "\n```"
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/check.md does not show what `dmarcd check %s` prints", domain)
		}
	}
}
