package unpack_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// TestCost checks that the time grows linearly: eight times the input takes about eight
// times as long. Like TestBombs it is not parallel.
func TestCost(t *testing.T) {
	const (
		length = 96 << 10
		more   = 8
		factor = 3 * more
	)
	fill := func(n int, part string) string { return strings.Repeat(part, n/len(part)) }
	quoted := "Content-Type: text/xml\nContent-Transfer-Encoding: quoted-printable\n\n<feedback>"
	var empty bytes.Buffer
	write(t, gzip.NewWriter(&empty), "")
	for _, test := range []struct {
		name string
		make func(n int) string
	}{
		{"a folded field", func(n int) string { return "Subject: x\nContent-Type: a/b;\n" + fill(n, " a\n") + "\n<feedback>" }},
		{"lines that are no fields", func(n int) string { return "Subject: x\n" + fill(n, "a\n") }},
		{"boundaries that are none", func(n int) string { return multiparts(16) + fill(n, "--"+boundary(20)+"\n") }},
		{"blanks in quoted-printable", func(n int) string { return quoted + fill(n, " ") }},
		{"equals signs in quoted-printable", func(n int) string { return quoted + fill(n, "=") }},
		{"stored members without a directory", func(n int) string { return fill(n, storedMember(1<<10)) }},
		{"a mailbox of lines that look like beginnings", func(n int) string {
			return "From a 10:00\nSubject: x\n\n" + fill(n, "\nFrom a\n")
		}},
		{"quoted lines of a mailbox", func(n int) string { return "From a 10:00\nSubject: x\n\n" + fill(n, strings.Repeat(">", 4<<10)+"\n") }},
		{"words of a field", func(n int) string { return "Subject: " + fill(n, "=?utf-8?q?a?=\n ") + "\n\n" }},
		{"parameters of a field", func(n int) string { return "Content-Type: a/b" + fill(n, ";\n a*0=b") + "\n\n<feedback>" }},
		{"gzip of nothing, many times", func(n int) string { return string(gzipped(t, report)) + fill(n, empty.String()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			costtest.AtMost(t, factor, walking(t, test.make(length)), walking(t, test.make(more*length)))
		})
	}
}

// TestFoldingCost checks that a field with many lines takes no longer than one with few:
// the length of a field is limited, the number of lines is not.
func TestFoldingCost(t *testing.T) {
	mail := func(line string) string {
		const field, parts = 14 << 10, 50
		part := "Content-Type: a/b;\nContent-Disposition: a;\n" + strings.Repeat(line, field/(len(line)-1)) + "\n<feedback>\n--" + boundary(0) + "\n"
		return multiparts(1) + strings.Repeat("--"+boundary(0)+"\n"+part, parts)
	}
	costtest.AtMost(t, 30, walking(t, mail(" "+strings.Repeat("a", 400)+"\n")), walking(t, mail(" a\n")))
}

// boundary returns boundaries of equal length that differ only in the last bytes.
func boundary(n int) string { return strings.Repeat("b", 40) + fmt.Sprintf("%03d", n) }

// multiparts returns the start of a mail with n nested multiparts.
func multiparts(n int) string {
	var b strings.Builder
	b.WriteString("Subject: x\nContent-Type: multipart/mixed; boundary=" + boundary(0) + "\n\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "--%s\nContent-Type: multipart/mixed; boundary=%s\n\n", boundary(i-1), boundary(i))
	}
	return b.String()
}

// storedMember returns a member of an archive whose header has no length.
func storedMember(length int) string {
	return "PK\x03\x04\x14\x00\x08\x00\x00\x00" + strings.Repeat("\x00", 16) + "\x01\x00\x00\x00a" + strings.Repeat("a", length)
}

func walking(t *testing.T, input string) func() {
	t.Helper()
	return func() {
		if _, err := list(t.Context(), strings.NewReader(input), unpack.DefaultLimits()); err != nil {
			t.Fatalf("got error %v, want none", err)
		}
	}
}
