package unpack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"
	"github.com/klauspost/compress/zlib"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// report is the beginning of an aggregate report, long enough to be recognized.
const report = `<?xml version="1.0" encoding="UTF-8"?>
<feedback>
  <report_metadata>
    <org_name>Example Receiver</org_name>
    <report_id>one@receiver.example</report_id>
    <date_range><begin>1700000000</begin><end>1700086399</end></date_range>
  </report_metadata>
  <policy_published><domain>sender.example</domain><p>none</p></policy_published>
</feedback>
`

// tlsReport is the beginning of a TLS report.
const tlsReport = `{"organization-name": "Example Receiver", "report-id": "2", "policies": []}`

// list walks through r and describes each part in one line.
func list(ctx context.Context, r io.Reader, limits unpack.Limits) ([]string, error) {
	var lines []string
	err := new(unpack.Walker).Walk(ctx, r, limits, func(p *unpack.Part) error {
		line := p.Kind.String()
		if p.Path != "" {
			line += " " + p.Path
		}
		if p.Kind == unpack.Rejected {
			lines = append(lines, line+": "+p.Err.Error())
			return nil
		}
		n, err := io.Copy(io.Discard, p)
		if p.Kind == unpack.Failure {
			line += fmt.Sprintf(", pieces of %d, %d and %d bytes",
				len(p.Failure.Feedback), len(p.Failure.Text), len(p.Failure.Original))
		} else {
			line += fmt.Sprintf(", %d bytes", n)
		}
		if p.Damage() != nil {
			line += ", " + p.Damage().Error()
		}
		var limit *unpack.LimitError
		if errors.As(err, &limit) {
			line += ", " + limit.Error()
			err = nil
		}
		lines = append(lines, line)
		return err
	})
	return lines, err
}

// zipped returns a zip archive of names and contents.
func zipped(t testing.TB, namesAndContents ...string) []byte {
	t.Helper()
	return zippedBy(t, zip.Deflate, namesAndContents)
}

// storedZip returns a zip archive of uncompressed files whose lengths follow the data.
func storedZip(t testing.TB, namesAndContents ...string) []byte {
	t.Helper()
	return zippedBy(t, zip.Store, namesAndContents)
}

func zippedBy(t testing.TB, method uint16, namesAndContents []string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(namesAndContents); i += 2 {
		w := musttest.Get(z.CreateHeader(&zip.FileHeader{Name: namesAndContents[i], Method: method}))(t)
		musttest.Get(io.WriteString(w, namesAndContents[i+1]))(t)
	}
	musttest.Do(t, z.Close())
	return b.Bytes()
}

// zippedWith returns a zip archive of one member with a changed header.
func zippedWith(t testing.TB, name, content string, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: name, Method: zip.Store}
	h.CompressedSize64 = uint64(len(content))
	h.UncompressedSize64 = uint64(len(content))
	change(h)
	w := musttest.Get(z.CreateRaw(h))(t)
	musttest.Get(io.WriteString(w, content))(t)
	musttest.Do(t, z.Close())
	return b.Bytes()
}

func gzipped(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	write(t, gzip.NewWriter(&b), content)
	return b.Bytes()
}

func deflated(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := musttest.Get(flate.NewWriter(&b, flate.BestCompression))(t)
	write(t, w, content)
	return b.Bytes()
}

func zlibbed(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	write(t, zlib.NewWriter(&b), content)
	return b.Bytes()
}

func write(t testing.TB, w io.WriteCloser, content string) {
	t.Helper()
	musttest.Get(io.WriteString(w, content))(t)
	musttest.Do(t, w.Close())
}
