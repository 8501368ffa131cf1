package unpack_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
)

// TestFormatsAtTheirEdges detects formats by content that is just enough, or just not.
func TestFormatsAtTheirEdges(t *testing.T) {
	t.Parallel()
	const (
		text   = "rejected: this is text, not a report"
		binary = "rejected: this is binary data, not a report"
		sniff  = 4096 // bytes that are used to detect the format
	)
	encoded := func(s string) []byte { return []byte(base64.StdEncoding.EncodeToString([]byte(s))) }
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"zeros", binary, make([]byte, 10)},
		{"a control character first", binary, []byte("\x01abc")},
		{"a control character", binary, []byte("abc\x1fdef")},
		{"white space", text, []byte("a\tb\r\nc d")},
		{"replacement character", binary, []byte("a\ufffd")},
		{"invalid bytes", binary, []byte("a\xff\xff\xff\xff")},
		{"a rune of two bytes at the end", text, []byte(strings.Repeat("a", sniff-1) + "é")},
		{"a rune of three bytes at the end", text, []byte(strings.Repeat("a", sniff-2) + "€")},
		{"a rune of four bytes at the end", text, []byte(strings.Repeat("a", sniff-3) + "\U0001f4e7")},
		{"half a magic", text, []byte("GIF")},
		{"tar without its magic", text, []byte(strings.Repeat("a", 257))},

		{"base64 of 24 characters", "aggregate, 18 bytes", encoded("<feedback><record>")},
		{"base64 of 23 characters", text, encoded("<feedback><record>")[:23]},
		{"base64 of blanks", text, encoded(strings.Repeat(" ", 30))},
		{"base64 of JSON", "tls, 75 bytes", encoded(tlsReport)},
		{"base64 with blanks", "aggregate, 351 bytes", bytes.ReplaceAll(encoded(report), []byte("A"), []byte(" \tA\r\n"))},
		{"base64 with a dot", text, bytes.Replace(encoded(report), []byte("A"), []byte("."), 1)},

		{"zlib of a window that is too large", binary, []byte("\x88\x1c\x00\x01\x02\x03\x04")},
		{"zlib with a dictionary", binary, []byte("\x78\x20\x00\x01\x02\x03\x04")},
		{"zlib with a wrong check", binary, []byte("\x78\x02\x00\x01\x02\x03\x04")},
		{"zlib of another method", binary, []byte("\x77\x09\x00\x01\x02\x03\x04")},
		{"zlib of five bytes", binary, []byte("\x78\x01\x00\x01\x02")},

		{"mail that is none", text, []byte("Hello: world\n\nSubject: no field of the header\n")},
		{"emlx after a byte order mark", "rejected: the container is damaged: strconv.ParseInt: parsing \"\\ufeff42\": invalid syntax", []byte("\ufeff42\nSubject: x\n\n")},
		{"a number of 16 digits", text, []byte("1234567890123456\nSubject: x\n\n")},
		{"uuencode without a name", text, []byte("begin 644 \n#0V%T\n`\nend\n")},
		{"uuencode of nothing", "rejected a.xml: the content is empty", []byte("begin 644 a.xml\n`\nend\n")},
	} {
		got, err := list(t.Context(), bytes.NewReader(test.data), unpack.DefaultLimits())
		if err != nil || strings.Join(got, "\n") != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

// contentOf returns the content of the only part in the data.
func contentOf(t *testing.T, data string) string {
	t.Helper()
	var content []byte
	err := new(unpack.Walker).Walk(t.Context(), strings.NewReader(data), unpack.DefaultLimits(), func(p *unpack.Part) (err error) {
		if p.Kind == unpack.Rejected {
			return p.Err
		}
		content, err = io.ReadAll(p)
		return err
	})
	if err != nil {
		t.Errorf("got error %v, want a part", err)
	}
	return string(content)
}

// TestEveryByteIsDecoded encodes all bytes in each encoding.
func TestEveryByteIsDecoded(t *testing.T) {
	t.Parallel()
	var all, upper, lower strings.Builder
	all.WriteString("<feedback>")
	upper.WriteString("<feedback>")
	lower.WriteString("<feedback>")
	for c := range 256 {
		all.WriteByte(byte(c))
		fmt.Fprintf(&upper, "=%02X", c)
		fmt.Fprintf(&lower, "=%02x", c)
		if c%16 == 15 {
			upper.WriteString("=\n")
			lower.WriteString("=\n")
		}
	}
	mail := func(encoding, body string) string {
		return "Content-Type: text/xml\nContent-Transfer-Encoding: " + encoding + "\n\n" + body
	}
	for name, data := range map[string]string{
		"quoted-printable":                mail("quoted-printable", upper.String()),
		"quoted-printable in lower case":  mail("Quoted-Printable", lower.String()),
		"base64":                          mail("base64", base64.StdEncoding.EncodeToString([]byte(all.String()))),
		"base64 for addresses":            mail("BASE64; x=y", base64.URLEncoding.EncodeToString([]byte(all.String()))),
		"base64 without padding":          mail("base64", base64.RawStdEncoding.EncodeToString([]byte(all.String()))),
		"base64 in pieces, each padded":   mail("base64", base64.StdEncoding.EncodeToString([]byte(all.String()[:101]))+base64.StdEncoding.EncodeToString([]byte(all.String()[101:]))),
		"base64 of an archive":            base64.StdEncoding.EncodeToString(gzipped(t, all.String())),
		"uuencode":                        string(uuencoded("a.xml", all.String())),
		"uuencode with graves for blanks": strings.ReplaceAll(string(uuencoded("axml", all.String())), " ", "`"),
	} {
		if name == "uuencode with graves for blanks" {
			data = strings.Replace(data, "begin`644`", "begin 644 ", 1)
		}
		if got := contentOf(t, data); got != all.String() {
			t.Errorf("%s: got %q, want %q", name, got, all.String())
		}
	}
}

// TestRatio checks the first content that is too much for its compressed length.
func TestRatio(t *testing.T) {
	t.Parallel()
	stored := storedZip(t, "a.xml", report)
	repeated := report + strings.Repeat(" ", 1000-len(report))
	for _, test := range []struct {
		name        string
		data        []byte
		ratio, from int64
		exceeded    bool
	}{
		{"as long as it is compressed", stored, 1, 0, false},
		{"little content", gzipped(t, repeated), 1, 1000, false},
		{"a byte more", gzipped(t, repeated), 1, 999, true},
	} {
		limits := unpack.DefaultLimits()
		limits.Ratio, limits.RatioFrom = test.ratio, test.from
		got, err := list(t.Context(), bytes.NewReader(test.data), limits)
		if err != nil || len(got) != 1 || strings.Contains(got[0], string(unpack.LimitRatio)) != test.exceeded {
			t.Errorf("%s: got %q, %v; want the limit: %t", test.name, got, err, test.exceeded)
		}
	}
}

// TestEntriesAreCountedOnce moves the directory of an archive across the end of the block
// that is searched for entries.
func TestEntriesAreCountedOnce(t *testing.T) {
	t.Parallel()
	const block, members = 64 << 10, 3
	archive := func(noise int) []byte {
		return storedZip(t, "noise", strings.Repeat("n", noise), "a.xml", report, "b.xml", report)
	}
	first := bytes.Index(archive(0), []byte("PK\x01\x02"))
	for shift := -6; shift <= 6; shift++ {
		data := archive(block - first + shift)
		for most, want := range map[int]error{members: nil, members - 1: dmarcd.ErrLimit} {
			limits := unpack.DefaultLimits()
			limits.Members = most
			if _, err := list(t.Context(), bytes.NewReader(data), limits); !errors.Is(err, want) {
				t.Errorf("entry at %d, %d members allowed: got error %v, want %v", shift, most, err, want)
			}
		}
	}
}

// TestSmallArchiveNeedsNoFile checks that an archive of a usual size is kept in memory.
func TestSmallArchiveNeedsNoFile(t *testing.T) {
	t.Parallel()
	limits := unpack.DefaultLimits()
	limits.Folder = filepath.Join(t.TempDir(), "missing")
	got, err := list(t.Context(), iotest.HalfReader(bytes.NewReader(zipped(t, "a.xml", report))), limits)
	if diff := cmp.Diff([]string{"aggregate a.xml, 351 bytes"}, got); err != nil || diff != "" {
		t.Errorf("got error %v and (+) against want (-):\n%s", err, diff)
	}
}

// TestMailEdges reads mails that are at the limits, or break a rule of their format.
func TestMailEdges(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return multiparts(n) + "--" + boundary(n-1) + "\nContent-Type: text/xml\n\n" + report
	}
	const maxField = 16 << 10
	// folded returns a mail with a field of that length, and a line that may be too much.
	folded := func(length int) string {
		const last = " ;name=a.xml"
		mail, length := "Subject: x\nContent-Type: text/xml\n", length-len("text/xml")
		for length > 0 {
			n := min(length, 1000)
			mail += " " + strings.Repeat(";", n-1) + "\n"
			length -= n
		}
		return mail + last + "\n\n" + report
	}
	for _, test := range []struct{ name, mail, want string }{
		{"16 nested multiparts", nested(16), `aggregate part-16, 351 bytes`},
		{"17 nested multiparts", nested(17), "rejected: over the limit of 16 for nesting"},
		{"a folded field that is stored", folded(maxField - len(" ;name=a.xml") - 1), `aggregate a.xml, 351 bytes`},
		{"a folded field that is too long", folded(maxField - len(" ;name=a.xml")), `aggregate, 351 bytes`},
		{"a subject of invalid bytes", "From: a@b.example\nSubject: " + strings.Repeat("\x80", 20<<10) + "\n\n" + report, `aggregate, 351 bytes`},
		{"a body with a prefix, without an empty line", "Subject: x\nContent-Type: text/xml\n<d:feedback xmlns:d=\"urn:d\"/>\n", `aggregate, 30 bytes`},
		{"a body of JSON, without an empty line", "Subject: x\nContent-Type: text/json\n" + tlsReport, `tls, 75 bytes`},
		{"a line that is no field", "Subject: x\nno field\nContent-Type: text/xml\n\n" + report, `aggregate, 351 bytes`},
		{"a folded line behind one that is no field", "Subject: x\nno field\n y\n\n" + report, `aggregate, 351 bytes`},
		{"a field folded by a tab", "Subject: x\n\ty\n\n" + report, `aggregate, 351 bytes`},
		{"a field without a name before a colon", "Subject: x\n: y\n\n" + report, `aggregate, 351 bytes`},
		{"a multipart without a boundary", "Subject: x\nContent-Type: multipart/mixed\n\n" + report, `aggregate, 351 bytes`},
		{
			"an epilogue", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/xml\n\n" + report + "\n--b--\n" + report + "\n--b\n\n" + report,
			`aggregate part-1, 351 bytes`,
		},
		{
			"an epilogue of an inner multipart", "Subject: x\nContent-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/mixed; boundary=b\n\n" +
				"--b\n\nhello\n--b--\n--b\n\nepilogue\n--a\nContent-Type: text/xml\n\n" + report + "\n--a--\n",
			`aggregate part-3, 351 bytes`,
		},
		{
			"a boundary that begins another", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/xml\n\n" + report + "--bc\n--b-\n\n--b--\n",
			`aggregate part-1, 361 bytes`,
		},
		{
			"a boundary within a long line", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/xml\n\n<feedback>" +
				strings.Repeat("x", 4086) + "--b\n--b--\n",
			`aggregate part-1, 4099 bytes`,
		},
		{
			"a preamble with a boundary within a long line", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("x", 4096) +
				"--b\n--b\nContent-Type: text/xml\n\n" + report + "\n--b--\n",
			`aggregate part-1, 351 bytes`,
		},
		{
			"a mail in an image", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: image/png\n\nSubject: y\n\n" + report + "\n--b--\n",
			"rejected: it contains no report",
		},
		{
			"a quoted semicolon in a broken field", "Subject: x\nContent-Type: text/xml; a=b c; name=\"a;b.xml\"; d=e\n\n" + report,
			`aggregate a;b.xml, 351 bytes`,
		},
		{
			"a report without a declaration in the text", "Subject: x\nContent-Type: text/plain\n\n<feedback>\n", `aggregate, 11 bytes`,
		},
		{
			"a declaration over two lines in the text", "Subject: x\nContent-Type: text/plain\n\n<?xml\nversion='1.0'?><a/>", `aggregate, 25 bytes`,
		},
		{
			"other XML in the text", "Subject: x\nContent-Type: text/plain\n\n<a/>\n", "rejected: it contains no report",
		},
		{
			"JSON in the text", "Subject: x\nContent-Type: text/plain\n\n{\"a\": 1}\n", "rejected: it contains no report",
		},
		{
			"a TLS report in the text", "Subject: x\nContent-Type: text/html\n\n" + tlsReport, `tls, 75 bytes`,
		},
		{
			"a mail of a media type of its own", "Subject: x\nContent-Type: message/global\n\nSubject: y\nContent-Type: text/xml\n\n" + report,
			`aggregate, 351 bytes`,
		},
		{
			"a failure report of another type", "Subject: x\nContent-Type: multipart/report; report-type=disposition-notification; boundary=b\n\n" +
				"--b\nContent-Type: message/rfc822\n\nSubject: y\nContent-Type: text/xml\n\n" + report + "\n--b--\n",
			`aggregate part-1, 351 bytes`,
		},
		{
			"the original of a failure report", "Subject: x\nContent-Type: multipart/report; report-type=Feedback-Report; boundary=b\n\n" +
				"--b\nContent-Type: message/rfc822\n\nSubject: y\nContent-Type: text/xml\n\n" + report + "\n--b--\n",
			"rejected: it contains no report",
		},
		{
			"the original behind the feedback", "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/feedback-report\n\n" +
				"Feedback-Type: auth-failure\n\n--b\nContent-Type: text/rfc822-headers\n\nSubject: y\n--b--\n",
			`failure, pieces of 28, 0 and 10 bytes`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{strings.NewReader(test.mail), iotest.OneByteReader(strings.NewReader(test.mail))} {
				got, err := list(t.Context(), r, unpack.DefaultLimits())
				if err != nil || strings.Join(got, "\n") != test.want {
					t.Errorf("got %q, %v; want %q", got, err, test.want)
				}
			}
		})
	}
}

// TestLooseMembers reads members of archives without a directory.
func TestLooseMembers(t *testing.T) {
	t.Parallel()
	const cutOff = ", the container is damaged: the archive has no directory, it is truncated"
	stored := func(name, content string) []byte {
		return withoutDirectory(zippedWith(t, name, content, func(*zip.FileHeader) {}))
	}
	whole := stored("a.xml", report)
	for _, test := range []struct {
		name string
		data []byte
		want []string
	}{
		{"clutter with its length", slices.Concat(stored("Thumbs.db", "PK\x03\x04"+strings.Repeat("x", 100)), whole), []string{"aggregate a.xml, 351 bytes" + cutOff}},
		{"members with their length", slices.Concat(whole, stored("b.xml", report)), []string{"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 351 bytes" + cutOff}},
		{"cut off in stored content", whole[:len(whole)-1], []string{"aggregate a.xml, 350 bytes" + cutOff}},
		{"cut off behind the header", whole[:len(whole)-len(report)], []string{"rejected a.xml: the content is empty"}},
		{"cut off in the name", whole[:32], []string{"rejected a.: the content is empty"}},
		{"cut off in the second header", slices.Concat(whole, whole[:29]), []string{"aggregate a.xml, 351 bytes" + cutOff}},
		{
			"an unknown length", slices.Concat(withHeader(whole, 18, "\xff\xff\xff\xff"), stored("b.xml", report)),
			[]string{"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 351 bytes" + cutOff},
		},
		{
			"a length that follows, and a wrong one before", slices.Concat(withHeader(withHeader(whole, 6, "\x08"), 18, "\x05"), stored("b.xml", report)),
			[]string{"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 351 bytes" + cutOff},
		},
		{
			"an extra field", withoutDirectory(zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Extra = []byte("\x99\x99\x04\x00abcd") })),
			[]string{"aggregate a.xml, 351 bytes" + cutOff},
		},
		{
			"an empty member without its length", withoutDirectory(storedZip(t, "empty", "", "a.xml", report)),
			[]string{"rejected empty: the content is empty", "aggregate a.xml, 351 bytes" + cutOff},
		},
		{
			"a member that is damaged", slices.Concat(withHeader(withoutDirectory(zipped(t, "b.xml", report)), 30+len("b.xml"), "\x07"), whole),
			[]string{"rejected b.xml: the container is damaged: flate: corrupt input before offset 1", "aggregate a.xml, 351 bytes" + cutOff},
		},
	} {
		for _, r := range []io.Reader{bytes.NewReader(test.data), iotest.OneByteReader(bytes.NewReader(test.data))} {
			got, err := list(t.Context(), r, unpack.DefaultLimits())
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%s: got error %v and (+) against want (-):\n%s", test.name, err, diff)
			}
		}
	}
}

// TestStreamedArchives reads archives from compressed streams that are damaged or expand to
// too much.
func TestStreamedArchives(t *testing.T) {
	t.Parallel()
	packed := gzipped(t, string(storedZip(t, "a.xml", report)))
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut off in the directory", packed[:len(packed)-30], "aggregate a.xml, 351 bytes, the container is damaged: unexpected EOF"},
		{"expands to too much", gzipped(t, string(storedZip(t, "a.xml", report+strings.Repeat(" ", 4<<20)))), "rejected: over the limit of 200 for compression ratio"},
	} {
		got, err := list(t.Context(), bytes.NewReader(test.data), unpack.DefaultLimits())
		if err != nil || strings.Join(got, "\n") != test.want {
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

// breaking is a file of which some reads succeed, and all later ones fail.
type breaking struct {
	*bytes.Reader

	reads int
	err   error
}

func (f *breaking) ReadAt(p []byte, offset int64) (int, error) {
	if f.reads--; f.reads < 0 {
		return 0, f.err
	}
	return f.Reader.ReadAt(p, offset)
}

// TestFilesThatBreak reads archives from a file that breaks at some time: that ends the walk,
// and is not a damaged report.
func TestFilesThatBreak(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	whole := zipped(t, "a.xml", report, "b.xml", report)
	for name, data := range map[string][]byte{"archive": whole, "archive without a directory": withoutDirectory(whole)} {
		for reads := 0; ; reads++ {
			file := &breaking{bytes.NewReader(data), reads, broken}
			got, err := list(t.Context(), file, unpack.DefaultLimits())
			if err == nil && file.reads >= 0 {
				break
			}
			if !errors.Is(err, broken) || strings.Contains(strings.Join(got, " "), "rejected") {
				t.Errorf("%s that breaks after %d reads: got %q, %v; want %v", name, reads, got, err, broken)
			}
		}
	}
}

// withHeader replaces bytes of the first header.
func withHeader(archive []byte, at int, piece string) []byte {
	archive = slices.Clone(archive)
	copy(archive[at:], piece)
	return archive
}

// TestMessagesStop checks that a loop over messages can be left.
func TestMessagesStop(t *testing.T) {
	t.Parallel()
	const mbox = "From a 10:00\nSubject: 1\n\n1\n\nFrom a 10:00\nSubject: 2\n\n"
	for message, err := range unpack.Messages(strings.NewReader(mbox)) {
		text, _ := io.ReadAll(message)
		if err != nil || string(text) != "Subject: 1\n\n1\n" {
			t.Errorf("got %q, %v; want the first message", text, err)
		}
		break
	}
}

// TestProgress checks that the caller learns of what is expanded, and can end the walk.
func TestProgress(t *testing.T) {
	t.Parallel()
	limits := unpack.DefaultLimits()
	enough := errors.New("enough")
	var most int64
	limits.Progress = func(expanded int64) error {
		most = max(most, expanded)
		if expanded > int64(len(report)) {
			return enough
		}
		return nil
	}
	_, err := list(t.Context(), bytes.NewReader(zipped(t, "a.xml", report)), limits)
	if err != nil || most != int64(len(report)) {
		t.Errorf("got %d bytes expanded and error %v, want %d", most, err, len(report))
	}
	if _, err := list(t.Context(), bytes.NewReader(zipped(t, "a.xml", report, "b.xml", report)), limits); !errors.Is(err, enough) {
		t.Errorf("got error %v, want %v", err, enough)
	}
}
