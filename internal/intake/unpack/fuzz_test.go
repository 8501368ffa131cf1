package unpack_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// FuzzWalk checks that limits hold, that every input has at least one part or an error,
// that names are clean, and that a stream gives the same result as a file.
func FuzzWalk(f *testing.F) {
	for _, file := range mailFiles(f) {
		data := musttest.Get(os.ReadFile(file))(f)
		f.Add(data)
	}
	archive := zipped(f, "a.xml", report, "b.json", tlsReport, "c.xml.gz", string(gzipped(f, report)))
	f.Add(archive)
	f.Add(withoutDirectory(archive))
	f.Add(gzipped(f, report))
	f.Add(append(gzipped(f, report), gzipped(f, tlsReport)...))
	f.Add(zlibbed(f, report))
	f.Add(inBase64(gzipped(f, report)))
	f.Add(uuencoded("a.xml.gz", string(gzipped(f, report))))
	f.Add(emlx("Subject: x\n\n" + report))
	f.Add(inUTF32(report))
	f.Add(storedZip(f, "a.xml", report))
	if bzipped, err := os.ReadFile("testdata/report.xml.bz2"); err == nil {
		f.Add(bzipped)
	}
	limits := unpack.Limits{Input: 1 << 16, Expanded: 1 << 18, Ratio: 50, RatioFrom: 1 << 12, Members: 20, Nesting: 4, Folder: f.TempDir()}

	f.Fuzz(func(t *testing.T, data []byte) {
		var read int64
		parts := 0
		visit := func(p *unpack.Part) error {
			parts++
			if (p.Kind == unpack.Rejected) != (p.Err != nil) {
				t.Errorf("got kind %v with reason %v", p.Kind, p.Err)
			}
			if !utf8.ValidString(p.Path) || len(p.Path) > 1024 {
				t.Errorf("got path %q", p.Path)
			}
			n, err := io.Copy(io.Discard, p)
			read += n
			var limit *unpack.LimitError
			if errors.As(err, &limit) {
				return nil
			}
			return err
		}
		err := new(unpack.Walker).Walk(t.Context(), bytes.NewReader(data), limits, visit)
		var limit *unpack.LimitError
		if err != nil && !errors.As(err, &limit) {
			t.Errorf("got error %v, want none but limits", err)
		}
		if err == nil && parts == 0 {
			t.Error("got no part and no error, want one of them")
		}
		if read > limits.Expanded+limits.Input {
			t.Errorf("got %d bytes, want at most %d", read, limits.Expanded+limits.Input)
		}
		file, fileErr := list(t.Context(), bytes.NewReader(data), limits)
		stream, streamErr := list(t.Context(), iotest.HalfReader(bytes.NewReader(data)), limits)
		if (fileErr == nil) != (streamErr == nil) {
			t.Errorf("got error %v from a stream, want %v", streamErr, fileErr)
		}
		if diff := cmp.Diff(file, stream); fileErr == nil && diff != "" {
			t.Errorf("got from a stream (+) against want (-):\n%s", diff)
		}
	})
}
