package unpack_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestMultipartsOfTheStandardLibrary writes mails of random structure with mime/multipart
// and checks that every report is found unchanged.
func TestMultipartsOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var mail bytes.Buffer
		var want []string
		w := multipart.NewWriter(&mail)
		mail.WriteString("Subject: random\r\nContent-Type: multipart/mixed; boundary=" + w.Boundary() + "\r\n\r\n")
		fill(t, w, 0, &want)
		if len(want) == 0 {
			want = []string{"rejected"}
		}
		var got []string
		err := new(unpack.Walker).Walk(t.Context(), iotest.HalfReader(&mail), unpack.DefaultLimits(), func(p *unpack.Part) error {
			if p.Kind == unpack.Rejected {
				got = append(got, "rejected")
				return nil
			}
			content, err := io.ReadAll(p)
			got = append(got, string(content))
			return err
		})
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (+) against want (-):\n%s", diff)
		}
	})
}

// fill writes random parts, and appends the reports among them to reports.
func fill(t *rapid.T, w *multipart.Writer, depth int, reports *[]string) {
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		kind := rapid.SampledFrom([]string{"7bit", "base64", "quoted-printable", "text", "multipart"}).Draw(t, "kind")
		if kind == "multipart" && depth < 5 {
			var inner bytes.Buffer
			nested := multipart.NewWriter(&inner)
			fill(t, nested, depth+1, reports)
			musttest.Do(t, writePart(w, "multipart/related; boundary="+nested.Boundary(), "", inner.String()))
			continue
		}
		if kind == "text" || kind == "multipart" {
			musttest.Do(t, writePart(w, "text/plain", "", "Some words.\r\n-- \r\nand -- dashes\r\n"))
			continue
		}
		// Lines start and end in awkward ways.
		content := report + rapid.StringMatching("([ =\t\r\n<.x-]|--)*").Draw(t, "tail")
		if kind == "quoted-printable" {
			content += "." // the encoding drops trailing spaces
		}
		*reports = append(*reports, content)
		musttest.Do(t, writePart(w, "text/xml", kind, content))
	}
	musttest.Do(t, w.Close())
}

func writePart(w *multipart.Writer, media, encoding, content string) error {
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {media}, "Content-Transfer-Encoding": {encoding}})
	if err != nil {
		return err
	}
	encoder := io.WriteCloser(nopCloser{part})
	switch encoding {
	case "base64":
		encoder = base64.NewEncoder(base64.StdEncoding, part)
	case "quoted-printable":
		encoder = quotedprintable.NewWriter(part)
		encoder.(*quotedprintable.Writer).Binary = true
	}
	if _, err := io.WriteString(encoder, content); err != nil {
		return err
	}
	return encoder.Close()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// TestQuotedLongLines puts each awkward sequence at every position around the end of the
// reader's buffer, in longer lines.
func TestQuotedLongLines(t *testing.T) {
	t.Parallel()
	const (
		buffer = 4096
		head   = "<feedback>"
	)
	for _, test := range []struct{ sequence, want string }{
		{"=3D", "="},
		{"=3d=3E", "=>"},
		{"=\r\n", ""},
		{"=  \r\n", ""},
		{"= x", "= x"},
		{"==41", "=A"},
		{"=4", "=4"},
		{"  \t\r\nx", "\r\nx"},
		{"  x", "  x"},
		{"\r\n", "\r\n"},
		{"\rx", "\rx"},
		{" =20\r\nx", "  \r\nx"},
	} {
		for shift := range 2*len(test.sequence) + 2 {
			body := func(sequence string) string {
				return head + strings.Repeat("x", buffer-len(head)-shift) + sequence + strings.Repeat("y", buffer) + sequence + "z"
			}
			mail := "Content-Type: text/xml\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + body(test.sequence)
			var got []byte
			err := new(unpack.Walker).Walk(t.Context(), strings.NewReader(mail), unpack.DefaultLimits(), func(p *unpack.Part) (err error) {
				got, err = io.ReadAll(p)
				return err
			})
			musttest.Do(t, err)
			if want := body(test.want); string(got) != want {
				t.Errorf("%q, %d bytes before the end of the buffer: got %q, want %q", test.sequence, shift, brief(string(got)), brief(want))
			}
		}
	}
}

// brief shortens the filler of a body.
func brief(body string) string {
	return strings.ReplaceAll(strings.ReplaceAll(body, strings.Repeat("x", 50), ""), strings.Repeat("y", 50), "")
}
