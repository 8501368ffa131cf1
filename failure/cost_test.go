package failure_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/costtest"
)

// TestCost checks that the time for a report depends only on its length.
func TestCost(t *testing.T) {
	const (
		length  = 256 << 10
		factor  = 30
		opening = "Feedback-Type: auth-failure\n"
	)
	fill := func(part string) []byte { return []byte(opening + strings.Repeat(part, length/len(part))) }
	plain := fill("Authentication-Results: a.example; dkim=fail header.d=b.example\n")
	for _, test := range []struct{ name, part string }{
		{"folded lines", "Authentication-Results:\n" + strings.Repeat(" a\n", 7<<10)},
		{"comments", "Auth-Failure: " + strings.Repeat("(", 8<<10) + "\n"},
		{"addresses", "Authentication-Results: " + strings.Repeat(`a@b"c `, 2<<10) + "\n"},
		{"open quotes", "Authentication-Results: " + strings.Repeat(`"a`, 6<<10) + "\n"},
		{"at signs", "Authentication-Results: " + strings.Repeat(`a@`, 6<<10) + "\n"},
		{"lines that are no fields", "a\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			hostile := fill(test.part)
			costtest.AtMost(t, factor, parsing(plain, plain), parsing(hostile, hostile))
		})
	}
}

func parsing(feedback, original []byte) func() {
	return func() {
		_, _ = failure.Parse(failure.Message{Feedback: feedback, Original: original}, failure.Options{})
	}
}
