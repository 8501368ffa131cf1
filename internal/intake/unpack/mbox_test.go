package unpack_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	const from = "From x@example.org Mon Nov  3 10:00:00 2025\n"
	for _, test := range []struct {
		name string
		mbox string
		want []string
	}{
		{"nothing", "", nil},
		{"no mailbox", "Subject: one\n\nOne.\n", nil},
		{"one", from + "Subject: one\n\nOne.\n", []string{"Subject: one\n\nOne.\n"}},
		{"two", from + "Subject: one\n\nOne.\n\n" + from + "Subject: two\n\nTwo.\n\n", []string{"Subject: one\n\nOne.\n", "Subject: two\n\nTwo.\n\n"}},
		{"wire line endings", strings.ReplaceAll(from+"A: 1\n\n1\n\n"+from+"A: 2\n\n2\n", "\n", "\r\n"), []string{"A: 1\r\n\r\n1\r\n", "A: 2\r\n\r\n2\r\n"}},
		{"quoted lines", from + "A: 1\n\n>From here\n>>From there\n> From\n", []string{"A: 1\n\nFrom here\n>From there\n> From\n"}},
		{"a line that is text", from + "A: 1\n\nFrom now on all is well.\n", []string{"A: 1\n\nFrom now on all is well.\n"}},
		{"a line without an empty one before", from + "A: 1\n\nHe wrote\n" + from + "end\n", []string{"A: 1\n\nHe wrote\n" + from + "end\n"}},
		{"empty lines", from + "A: 1\n\n\n\n1\n\n\n\n" + from + "A: 2\n", []string{"A: 1\n\n\n\n1\n\n\n", "A: 2\n"}},
		{"an empty message", from + "\n" + from + "A: 2\n", []string{"", "A: 2\n"}},
		{"long lines", from + strings.Repeat("x", 10_000) + "\n\n" + from + "y", []string{strings.Repeat("x", 10_000) + "\n", "y"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for message, err := range unpack.Messages(iotest.HalfReader(strings.NewReader(test.mbox))) {
				if err != nil {
					t.Fatalf("got error %v, want none", err)
				}
				text, err := io.ReadAll(message)
				if err != nil {
					t.Fatalf("got error %v, want none", err)
				}
				got = append(got, string(text))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (+) against want (-):\n%s", diff)
			}
			// Unread messages are skipped.
			count := 0
			for range unpack.Messages(strings.NewReader(test.mbox)) {
				count++
			}
			if count != len(test.want) {
				t.Errorf("got %d messages unread, want %d", count, len(test.want))
			}
		})
	}
}

func TestMessagesReportsTheErrorOfTheReader(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	r := io.MultiReader(strings.NewReader("From x Mon Nov  3 10:00:00 2025\nSubject: one\n"), iotest.ErrReader(broken))
	var last error
	count := 0
	for message, err := range unpack.Messages(r) {
		count++
		last = err
		if err == nil {
			_, last = io.Copy(io.Discard, message)
		}
	}
	if !errors.Is(last, broken) || count != 2 {
		t.Errorf("got error %v after %d turns, want %v after 2", last, count, broken)
	}
}

func TestIsMbox(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]bool{
		"From x Mon Nov  3 10:00:00 2025\n": true,
		"From: x@example.org\n":             false,
		"From here on\nat 10:00\n":          false,
		"":                                  false,
	} {
		if got := unpack.IsMbox([]byte(head)); got != want {
			t.Errorf("%q: got %v, want %v", head, got, want)
		}
	}
}

// TestMails compares the parts of the mails in testdata with their golden files.
func TestMails(t *testing.T) {
	t.Parallel()
	for _, file := range mailFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data := musttest.Get(os.ReadFile(file))(t)
			got, err := list(t.Context(), bytes.NewReader(data), unpack.DefaultLimits())
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			goldentest.Check(t, file+".golden", strings.Join(got, "\n")+"\n")
		})
	}
}

// TestMailsOnTheWire reads the same mails with CRLF line endings, in pieces. Only the
// lengths of text may change.
func TestMailsOnTheWire(t *testing.T) {
	t.Parallel()
	lengths := regexp.MustCompile(`\d+( bytes|,| and )`)
	for _, file := range mailFiles(t) {
		data := musttest.Get(os.ReadFile(file))(t)
		want := musttest.Get(os.ReadFile(file + ".golden"))(t)
		wire := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		lines, err := list(t.Context(), iotest.HalfReader(bytes.NewReader(wire)), unpack.DefaultLimits())
		if err != nil {
			t.Fatalf("%s: got error %v, want none", file, err)
		}
		got := lengths.ReplaceAllString(strings.Join(lines, "\n")+"\n", "n$1")
		if diff := cmp.Diff(lengths.ReplaceAllString(string(want), "n$1"), got); diff != "" {
			t.Errorf("%s: got (+) against want (-):\n%s", file, diff)
		}
	}
}

func mailFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.eml", "*.mbox"} {
		found := musttest.Get(filepath.Glob(filepath.Join("testdata", pattern)))(t)
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatal("got no mails in testdata, want some")
	}
	return files
}
