package unpack_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zip"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// hashed returns a name of two-byte letters as it is cut to 255 bytes.
func hashed(name string) string {
	hash := sha256.Sum256([]byte(name))
	return name[:238] + "~" + hex.EncodeToString(hash[:8])
}

func TestContainers(t *testing.T) {
	t.Parallel()
	const second = `<feedback><report_metadata/></feedback>`
	const mail = "From: reports@receiver.example\nSubject: Report\nContent-Type: text/xml; name=a.xml\n\n" + report
	const cutOff = ", the container is damaged: the archive has no directory, it is truncated"
	small := gzipped(t, report)
	bzipped := musttest.Get(os.ReadFile(filepath.Join("testdata", "report.xml.bz2")))(t)
	archive := zipped(t, "a.xml", report, "b.xml", second)
	// The length of a deflated member is before its data.
	packed := string(deflated(t, report))
	withLength := func(h *zip.FileHeader) {
		h.Method, h.UncompressedSize64, h.CRC32 = zip.Deflate, uint64(len(report)), crc32.ChecksumIEEE([]byte(report))
	}
	sized := slices.Concat(withoutDirectory(zippedWith(t, "a.xml", packed, withLength)), zippedWith(t, "b.xml", packed, withLength))

	for _, test := range []struct {
		name string
		data []byte
		want []string
	}{
		{"nothing", nil, []string{"rejected: the content is empty"}},
		{"blanks", []byte(" \r\n\t"), []string{"rejected: the content is empty"}},
		{"XML", []byte(report), []string{"aggregate, 351 bytes"}},
		{"XML after a byte order mark and blanks", []byte("\ufeff \n" + report), []string{"aggregate, 356 bytes"}},
		{"XML in UTF-16", inUTF16(report), []string{"aggregate, 704 bytes"}},
		{"XML after words", []byte("Here it is:\n" + report), []string{"aggregate, 363 bytes"}},
		{"XML with a prefix and no declaration", []byte(`<d:feedback xmlns:d="urn:x">`), []string{"aggregate, 28 bytes"}},
		{"XML that is something else", []byte(`<?xml version="1.0"?><rss/>`), []string{"aggregate, 27 bytes"}},
		{"JSON", []byte(tlsReport), []string{"tls, 75 bytes"}},
		{"a word instead of a report", []byte("unused\n"), []string{`rejected: the content is the word "unused" instead of a report`}},
		{"text", []byte("Hello,\nhow are you?\n"), []string{"rejected: this is text, not a report"}},
		{"a web page", []byte("<!DOCTYPE html><html>"), []string{"rejected: this is a web page, not a report"}},
		{"a PDF document", []byte("%PDF-1.7\n\x00"), []string{"rejected: this is a PDF document, not a report"}},
		{"binary data", []byte("\x00\x01\x02\x03\xff"), []string{"rejected: this is binary data, not a report"}},

		{"gzip", small, []string{"aggregate, 351 bytes"}},
		{"gzip twice", gzipped(t, string(small)), []string{"aggregate, 351 bytes"}},
		{"gzip of nothing", gzipped(t, ""), []string{"rejected: the content is empty"}},
		{"gzip of text", gzipped(t, "not empty"), []string{"rejected: this is text, not a report"}},
		{"gzip in members", slices.Concat(gzipped(t, report[:200]), gzipped(t, report[200:])), []string{"aggregate, 351 bytes"}},
		{
			"gzip of joined reports", slices.Concat(small, gzipped(t, second), gzipped(t, tlsReport)),
			[]string{"aggregate, 351 bytes", "aggregate 2, 39 bytes", "tls 3, 75 bytes"},
		},
		{"gzip with bytes after it", slices.Concat(small, []byte("\r\n")), []string{"aggregate, 351 bytes"}},
		{"gzip cut off", small[:200], []string{"aggregate, 308 bytes, the container is damaged: unexpected EOF"}},
		{"gzip without its checksum", small[:len(small)-8], []string{"aggregate, 351 bytes, the container is damaged: unexpected EOF"}},
		{"gzip with a wrong checksum", changed(small, len(small)-8), []string{"aggregate, 351 bytes, the container is damaged: gzip: invalid checksum"}},
		{"gzip that is nothing but its mark", small[:4], []string{"rejected: the container is damaged: unexpected EOF"}},

		{"zlib", zlibbed(t, report), []string{"aggregate, 351 bytes"}},
		{"zlib cut off", zlibbed(t, report)[:100], []string{"aggregate, 76 bytes, the container is damaged: unexpected EOF"}},
		{"text that begins like zlib", []byte("x^2 is a square\n"), []string{"rejected: this is text, not a report"}},
		{"base64", inBase64(small), []string{"aggregate, 351 bytes"}},
		{"base64 of something else", inBase64([]byte("a long text without a report in it")), []string{"rejected: this is text, not a report"}},

		{"zip", archive, []string{"aggregate a.xml, 351 bytes", "aggregate b.xml, 39 bytes"}},
		{"zip with folders", zipped(t, "2026/", "", "2026/may/a.xml", report), []string{"aggregate 2026/may/a.xml, 351 bytes"}},
		{"zip from a Macintosh", zipped(t, "a.xml", report, "__MACOSX/._a.xml", "\x00\x05\x16\x07", ".DS_Store", "\x00"), []string{"aggregate a.xml, 351 bytes"}},
		{"zip with nothing but clutter", zipped(t, "folder/", "", "Thumbs.db", "x"), []string{"rejected: it contains no report"}},
		{"zip of nothing", zipped(t), []string{"rejected: it contains no report"}},
		{"zip with other files", zipped(t, "README", "Hello", "a.xml", report, "b.xml", ""), []string{
			"rejected README: this is text, not a report", "aggregate a.xml, 351 bytes", "rejected b.xml: the content is empty",
		}},
		{"zip with names that lead elsewhere", zipped(t, "../../etc/a.xml", report, `C:\x\b.xml`, second, "/c\x1b[1m.xml", second), []string{
			"aggregate etc/a.xml, 351 bytes", "aggregate C:/x/b.xml, 39 bytes", "aggregate c[1m.xml, 39 bytes",
		}},
		{"zip with long names", zipped(t, strings.Repeat("ü", 200)+".xml", report, strings.Repeat("ü", 200)+"2.xml", report), []string{
			"aggregate " + hashed(strings.Repeat("ü", 200)+".xml") + ", 351 bytes", "aggregate " + hashed(strings.Repeat("ü", 200)+"2.xml") + ", 351 bytes",
		}},
		{"zip after junk", slices.Concat([]byte("MZ junk \x00\x01"), archive), []string{"aggregate a.xml, 351 bytes", "aggregate b.xml, 39 bytes"}},
		{"zip before junk", slices.Concat(archive, bytes.Repeat([]byte("junk"), 10)), []string{"aggregate a.xml, 351 bytes", "aggregate b.xml, 39 bytes"}},
		{"zip without its directory", withoutDirectory(archive), []string{"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 39 bytes" + cutOff}},
		{"zip cut off in a member", archive[:150], []string{"aggregate a.xml, 111 bytes, the container is damaged: unexpected EOF"}},
		{"zip cut off in its first header", archive[:20], []string{"rejected: the container is damaged: zip: not a valid zip file"}},
		{"zip stored and without its directory", withoutDirectory(zippedWith(t, "a.xml", report, func(*zip.FileHeader) {})), []string{"aggregate a.xml, 351 bytes" + cutOff}},
		{"zip stored, without lengths and its directory", withoutDirectory(storedZip(t, "a.xml", report, "b.xml", second)), []string{"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 39 bytes" + cutOff}},
		{"zip with a wrong checksum", zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.CRC32 = 1 }), []string{
			"aggregate a.xml, 351 bytes, the container is damaged: zip: checksum error",
		}},
		{"zip with a password", zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Flags |= 1 }), []string{"rejected a.xml: the archive is encrypted"}},
		{"zip with a password and without its directory", withoutDirectory(zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Flags |= 1 })), []string{
			"rejected a.xml: the archive is encrypted",
		}},
		{"zip of an unknown method", zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Method = 14 }), []string{
			"rejected a.xml: the compression method of the zip member is not supported: LZMA",
		}},
		{"zip of a method that is not known", zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Method = 77 }), []string{
			"rejected a.xml: the compression method of the zip member is not supported: method 77",
		}},
		{"zip of LZMA without a directory", withoutDirectory(zippedWith(t, "a.xml", report, func(h *zip.FileHeader) { h.Method = 14 })), []string{
			"rejected a.xml: the compression method of the zip member is not supported: LZMA",
		}},
		{"zip without a directory whose members have their length", withoutDirectory(sized), []string{
			"aggregate a.xml, 351 bytes" + cutOff, "aggregate b.xml, 351 bytes" + cutOff,
		}},
		{"zip without a directory whose stored member contains a mark", withoutDirectory(zippedWith(t, "a.xml", report+"PK\x03\x04", func(*zip.FileHeader) {})), []string{
			"aggregate a.xml, 355 bytes" + cutOff,
		}},
		{"zip without a directory whose encrypted member contains another", withoutDirectory(zippedWith(t, "a.xml",
			string(withoutDirectory(storedZip(t, "b.xml", report))), func(h *zip.FileHeader) { h.Flags |= 1 })), []string{
			"rejected a.xml: the archive is encrypted",
		}},
		{"zlib cut off", zlibbed(t, report)[:6], []string{"rejected: the container is damaged: unexpected EOF"}},
		{"base64 of few bytes", inBase64([]byte("<feedback><record>")), []string{"aggregate, 18 bytes"}},
		{"zip of bzip2", zippedWith(t, "a.xml", string(bzipped), func(h *zip.FileHeader) {
			h.Method = 12
			h.UncompressedSize64 = uint64(len(report))
			h.CRC32 = crc32.ChecksumIEEE([]byte(report))
		}), []string{"aggregate a.xml, 351 bytes"}},
		{"bzip2", bzipped, []string{"aggregate, 351 bytes"}},
		{"bzip2 twice over", slices.Concat(bzipped, bzipped), []string{"aggregate, 702 bytes"}},
		{"bzip2 cut off", bzipped[:100], []string{"rejected: the container is damaged: unexpected EOF"}},
		{"bzip2 in gzip", gzipped(t, string(bzipped)), []string{"aggregate, 351 bytes"}},
		{"text that begins like bzip2", []byte("BZh9 is how it begins\n"), []string{"rejected: this is text, not a report"}},
		{"xz", []byte("\xfd7zXZ\x00"), []string{"rejected: this is xz data, not a report"}},
		{"Zstandard", []byte("\x28\xb5\x2f\xfd\x00"), []string{"rejected: this is Zstandard data, not a report"}},
		{"LZMA", []byte("\x5d\x00\x00\x80\x00\xff"), []string{"rejected: this is LZMA data, not a report"}},
		{"7-Zip", []byte("7z\xbc\xaf\x27\x1c\x00"), []string{"rejected: this is a 7-Zip archive, not a report"}},
		{"RAR", []byte("Rar!\x1a\x07\x00"), []string{"rejected: this is a RAR archive, not a report"}},
		{"tar", []byte("a.xml" + strings.Repeat("\x00", 252) + "ustar\x00"), []string{"rejected: this is a tar archive, not a report"}},
		{"winmail.dat", []byte("\x78\x9f\x3e\x22\x01\x02"), []string{"rejected: this is a TNEF attachment (winmail.dat), not a report"}},

		{"a list of TLS reports", []byte(" [\n " + tlsReport + "]"), []string{"tls, 80 bytes"}},
		{"a TLS report in UTF-16", inUTF16(tlsReport), []string{"tls, 152 bytes"}},
		{"XML in UTF-32", inUTF32(report), []string{"aggregate, 1408 bytes"}},
		{"emlx", emlx(mail), []string{`aggregate a.xml, 351 bytes`}},
		{"emlx in gzip", gzipped(t, string(emlx(mail))), []string{`aggregate a.xml, 351 bytes`}},
		{"emlx after empty lines", slices.Concat([]byte("\n \n"), emlx(mail)), []string{`aggregate a.xml, 351 bytes`}},
		{"a number and a report", []byte("42\n" + report), []string{"aggregate, 354 bytes"}},

		{"uuencode", uuencoded("a.xml", report), []string{"aggregate a.xml, 351 bytes"}},
		{"uuencode of gzip", uuencoded("a.xml.gz", string(small)), []string{"aggregate a.xml.gz, 351 bytes"}},
		{"uuencode after words", slices.Concat([]byte("Here it is:\n\n"), uuencoded("a.xml", report), []byte("\nRegards\n")), []string{"aggregate a.xml, 351 bytes"}},
		{"uuencode after a line that begins like it", slices.Concat([]byte("begin with this file\n"), uuencoded("a.xml", report)), []string{"aggregate a.xml, 351 bytes"}},
		{"uuencode of several", slices.Concat(uuencoded("a.xml", report), uuencoded("b.json", tlsReport)), []string{"aggregate a.xml, 351 bytes", "tls b.json, 75 bytes"}},
		{"uuencode without trailing blanks", withoutTrailingBlanks(uuencoded("a.xml", report)), []string{"aggregate a.xml, 351 bytes"}},
		{"uuencode cut off", uuencoded("a.xml", report)[:300], []string{"aggregate a.xml, 204 bytes, the container is damaged: unexpected EOF"}},
		{
			"uuencode in the text of a mail", []byte("Subject: Report\nContent-Type: text/plain\n\nHere it is:\n" + string(uuencoded("a.xml", report))),
			[]string{`aggregate a.xml, 351 bytes`},
		},
		{
			"uuencode as a transfer encoding",
			[]byte("Subject: Report\nContent-Type: text/xml; name=b.xml\nContent-Transfer-Encoding: x-uuencode\n\n" + string(uuencoded("a.xml", report))),
			[]string{`aggregate b.xml/a.xml, 351 bytes`},
		},

		{"zip in gzip", gzipped(t, string(archive)), []string{"aggregate a.xml, 351 bytes", "aggregate b.xml, 39 bytes"}},
		{"zip in gzip cut off", gzipped(t, string(archive))[:250], []string{"aggregate a.xml, 178 bytes, the container is damaged: unexpected EOF"}},
		{"gzip in zip", zipped(t, "a.xml.gz", string(small), "b.json", tlsReport), []string{"aggregate a.xml.gz, 351 bytes", "tls b.json, 75 bytes"}},
		{"zip in zip", zipped(t, "all.zip", string(archive)), []string{"aggregate all.zip/a.xml, 351 bytes", "aggregate all.zip/b.xml, 39 bytes"}},
		{"a mail in a zip", zipped(t, "1.eml", mail), []string{`aggregate 1.eml/a.xml, 351 bytes`}},
		{"a mailbox in gzip", gzipped(t, "From x Mon Nov  3 10:00:00 2025\n"+mail+"\nFrom x Mon Nov  3 10:00:00 2025\nSubject: Hello\n\nHello.\n"), []string{
			`aggregate a.xml, 351 bytes`, "rejected message-2: it contains no report",
		}},
		{"a mailbox in gzip cut off", gzipped(t, "From x Mon Nov  3 10:00:00 2025\n"+mail)[:250], []string{
			`aggregate a.xml, 264 bytes`, "rejected: the container is damaged: unexpected EOF",
		}},
		{"a mail in gzip cut off", gzipped(t, mail)[:250], []string{
			`aggregate a.xml, 310 bytes`, "rejected: the container is damaged: unexpected EOF",
		}},
		{"digits of quoted-printable", []byte("Subject: Report\nContent-Type: text/xml; name=a.xml\nContent-Transfer-Encoding: quoted-printable\n\n" +
			strings.NewReplacer("=", "=3D", "i", "=69").Replace(report)), []string{`aggregate a.xml, 351 bytes`}},
		{"a report in a part of another kind of message", []byte("Subject: two\nContent-Type: multipart/mixed; boundary=b\n\n" +
			"--b\nContent-Type: message/delivery-status\n\n" + report + "\n--b--\n"), []string{
			`aggregate part-1, 351 bytes`,
		}},
		{"a mail in a report of delivery", []byte("Subject: two\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n" +
			"--b\nContent-Type: message/rfc822\n\n" + mail + "\n--b--\n"), []string{
			`aggregate part-1/a.xml, 351 bytes`,
		}},
		{"a mail with two feedback reports", []byte("Subject: two\nContent-Type: multipart/report; boundary=b\n\n" +
			"--b\nContent-Type: message/feedback-report\n\nFeedback-Type: auth-failure\n" +
			"--b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\n--b--\n"), []string{
			`failure, pieces of 27, 0 and 0 bytes`,
		}},
		{"a line that is nearly one of a mailbox", []byte("From x Mon Nov  3 10:0\x000:00 2025\n"), []string{"rejected: this is text, not a report"}},
		{"a feedback report without its mail", []byte("Feedback-Type: auth-failure\nVersion: 1\n"), []string{"failure, pieces of 39, 0 and 0 bytes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := list(t.Context(), bytes.NewReader(test.data), unpack.DefaultLimits())
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("got (+) against want (-):\n%s", diff)
			}
			// A stream must give the same result as a file.
			got, err = list(t.Context(), iotest.OneByteReader(bytes.NewReader(test.data)), unpack.DefaultLimits())
			if err != nil {
				t.Fatalf("stream: got error %v, want none", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("stream: got (+) against want (-):\n%s", diff)
			}
		})
	}
}

func inUTF16(text string) []byte {
	data := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		data = append(data, byte(unit), byte(unit>>8))
	}
	return data
}

func inBase64(data []byte) []byte {
	var lines strings.Builder
	for chunk := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(data)), 64) {
		lines.Write(chunk)
		lines.WriteByte('\n')
	}
	return []byte(lines.String())
}

// changed returns data with one byte changed.
func changed(data []byte, at int) []byte {
	data = slices.Clone(data)
	data[at] ^= 0xff
	return data
}

// withoutDirectory truncates an archive before its directory.
func withoutDirectory(archive []byte) []byte {
	members, _, _ := bytes.Cut(archive, []byte("PK\x01\x02"))
	return members
}

func inUTF32(text string) []byte {
	data := []byte{0, 0, 0xfe, 0xff}
	for _, r := range text {
		data = append(data, byte(r>>24), byte(r>>16), byte(r>>8), byte(r))
	}
	return data
}

// emlx returns a mail in the format of Apple Mail.
func emlx(mail string) []byte {
	return fmt.Appendf(nil, "%-10d\n%s<?xml version=\"1.0\"?>\n<plist version=\"1.0\"><dict/></plist>\n", len(mail), mail)
}

func uuencoded(name, content string) []byte {
	const perLine = 45
	b := []byte("begin 644 " + name + "\n")
	for len(content) > 0 {
		n := min(len(content), perLine)
		line := content[:n] + "\x00\x00"
		content = content[n:]
		b = append(b, ' '+byte(n))
		for i := 0; i < n; i += 3 {
			bits := uint(line[i])<<16 | uint(line[i+1])<<8 | uint(line[i+2])
			for shift := 18; shift >= 0; shift -= 6 {
				b = append(b, ' '+byte(bits>>shift&0x3f))
			}
		}
		b = append(b, '\n')
	}
	return append(b, "`\nend\n"...)
}

// withoutTrailingBlanks removes trailing spaces, as some gateways do.
func withoutTrailingBlanks(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return bytes.Join(lines, []byte("\n"))
}
