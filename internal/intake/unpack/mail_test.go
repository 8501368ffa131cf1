package unpack_test

import (
	"bytes"
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
