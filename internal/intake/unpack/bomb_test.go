package unpack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// TestBombs sends input that is made to exhaust a parser. A limit must reject each within
// 5 s of processor time and 96 MiB of memory. The test counts all allocations, freed or not, so it is not
// parallel. The race detector slows decompression down ten times and empties pools at
// random, so with it the limit on expanded bytes is an eighth.
func TestBombs(t *testing.T) {
	limits := unpack.DefaultLimits()
	limits.Expanded /= 8
	const most = 5 * time.Second
	const memory = 96 << 20
	for _, bomb := range []struct {
		name string
		make func(t *testing.T) io.Reader
		want unpack.Limit // or the text of another reason
	}{
		{"4 GiB of zeros in gzip", zeros, "not a report"},
		{"4 GiB of zeros in a report in gzip", zerosInReport, unpack.LimitRatio},
		{"4 GiB of zeros in a mail in gzip", zerosInMail, "no report"},
		{"4 GiB of zeros in a mailbox in gzip", zerosInMailbox, unpack.LimitRatio},
		{"300 MiB that do not compress very well", textsInGzip, unpack.LimitExpanded},
		{"a zip of 20,000 files", manyFiles, unpack.LimitMembers},
		{"a zip of 20,000 files that declares one", manyFilesOneDeclared, unpack.LimitMembers},
		{"a zip of 20,000 files without a directory", manyFilesNoDirectory, unpack.LimitMembers},
		{"gzip twelve deep", deepGzip, unpack.LimitNesting},
		{"zip twelve deep", deepZip, unpack.LimitNesting},
		{"a mail of 1,000 nested multiparts", deepMultiparts, unpack.LimitNesting},
		{"a mail of 1,000 nested mails", deepMails, unpack.LimitNesting},
		{"a mail of 2,000 parts", manyParts, unpack.LimitMembers},
		{"a mailbox of 100,000 messages", manyMessages, unpack.LimitMembers},
		{"gzip of 100,000 reports", manyDocuments, unpack.LimitMembers},
		{"more than may come in", endless, unpack.LimitInput},
		{"a header without end", endlessHeader, unpack.LimitInput},
	} {
		t.Run(bomb.name, func(t *testing.T) {
			r := bomb.make(t)
			var before, after runtime.MemStats
			var lines []string
			var err error
			runtime.ReadMemStats(&before)
			costtest.Within(t, most, func() { lines, err = list(t.Context(), r, limits) })
			runtime.ReadMemStats(&after)

			reported := strings.Join(lines, "\n")
			if err != nil {
				if !errors.Is(err, dmarcd.ErrLimit) {
					t.Fatalf("got error %v, want a limit", err)
				}
				reported = err.Error()
			}
			if !strings.Contains(reported, string(bomb.want)) {
				t.Errorf("got %.500q, want it refused because of %s", reported, bomb.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > memory {
				t.Errorf("got %d bytes allocated, want at most %d", used, memory)
			}
		})
	}
}

// TestAbsurdSizes checks that declared sizes are not trusted.
func TestAbsurdSizes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(*zip.FileHeader)
	}{
		{"content of 1 EiB", func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 60 }},
		{"data of 1 EiB", func(h *zip.FileHeader) { h.CompressedSize64 = 1 << 60 }},
		{"both", func(h *zip.FileHeader) { h.UncompressedSize64, h.CompressedSize64 = 1<<60, 1<<60 }},
		{"nothing", func(h *zip.FileHeader) { h.UncompressedSize64, h.CompressedSize64 = 0, 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			archive := zippedWith(t, "a.xml", report, test.change)
			lines, err := list(t.Context(), bytes.NewReader(archive), unpack.DefaultLimits())
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], "damaged") && !strings.Contains(lines[0], "empty") {
				t.Errorf("got %q, want one damaged part", lines)
			}
		})
	}
}

// zeros returns 4 GiB of zeros in gzip, as a stream.
func zeros(t *testing.T) io.Reader { return packedStream(t, "", 4<<30) }

func zerosInReport(t *testing.T) io.Reader { return packedStream(t, report, 4<<30) }

func zerosInMail(t *testing.T) io.Reader { return packedStream(t, "Subject: zeros\n\n", 4<<30) }

func zerosInMailbox(t *testing.T) io.Reader {
	return packedStream(t, "From x Mon Nov  3 10:00:00 2025\nSubject: zeros\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n", 4<<30)
}

// packedStream returns a text followed by zeros, compressed while it is read.
func packedStream(t *testing.T, text string, length int64) io.Reader {
	t.Helper()
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		z := gzip.NewWriter(w)
		_, err := io.WriteString(z, text)
		block := make([]byte, 64<<10)
		for n := int64(0); n < length && err == nil; n += int64(len(block)) {
			_, err = z.Write(block)
		}
		w.CloseWithError(errors.Join(err, z.Close()))
	}()
	t.Cleanup(func() {
		_ = r.Close() // stops the writer
		<-done
	})
	return r
}

func textsInGzip(t *testing.T) io.Reader {
	var text strings.Builder
	for i := range 1 << 14 {
		fmt.Fprintf(&text, "<record>%d</record>", i%1000)
	}
	return bytes.NewReader(bytes.Repeat(gzipped(t, text.String()), 300<<20/text.Len()))
}

func manyFiles(t *testing.T) io.Reader { return bytes.NewReader(manyFilesArchive(t)) }

func manyFilesArchive(t *testing.T) []byte {
	t.Helper()
	var files []string
	for i := range 20_000 {
		files = append(files, fmt.Sprintf("%d.xml", i), "<feedback>")
	}
	return storedZip(t, files...)
}

func manyFilesOneDeclared(t *testing.T) io.Reader {
	archive := manyFilesArchive(t)
	end := bytes.LastIndex(archive, []byte("PK\x05\x06"))
	copy(archive[end+8:], []byte{1, 0, 1, 0})
	return bytes.NewReader(archive)
}

func manyFilesNoDirectory(t *testing.T) io.Reader {
	return bytes.NewReader(withoutDirectory(manyFilesArchive(t)))
}

func deepGzip(t *testing.T) io.Reader {
	content := report
	for range 12 {
		content = string(gzipped(t, content))
	}
	return strings.NewReader(content)
}

func deepZip(t *testing.T) io.Reader {
	content := report
	for range 12 {
		content = string(zipped(t, "x", content))
	}
	return strings.NewReader(content)
}

func deepMultiparts(*testing.T) io.Reader {
	var b strings.Builder
	b.WriteString("Subject: deep\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	b.WriteString("Content-Type: text/xml\n\n" + report)
	return strings.NewReader(b.String())
}

func deepMails(*testing.T) io.Reader {
	return strings.NewReader(strings.Repeat("Subject: deep\nContent-Type: message/rfc822\n\n", 1000) + report)
}

func manyParts(*testing.T) io.Reader {
	part := "--b\nContent-Type: text/xml\n\n" + report
	return strings.NewReader("Subject: many\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat(part, 2000))
}

func manyMessages(*testing.T) io.Reader {
	return strings.NewReader(strings.Repeat("From x Mon Nov  3 10:00:00 2025\nSubject: many\n\n", 100_000))
}

func manyDocuments(t *testing.T) io.Reader {
	return bytes.NewReader(bytes.Repeat(gzipped(t, "<feedback>"), 100_000))
}

func endless(*testing.T) io.Reader {
	return io.MultiReader(strings.NewReader(report), neverEnding('x'))
}

func endlessHeader(*testing.T) io.Reader {
	return io.MultiReader(strings.NewReader("Subject: long\nContent-Type: "), neverEnding('x'))
}

// neverEnding returns one byte endlessly.
type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

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
