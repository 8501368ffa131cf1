package unpack_test

import (
	"io"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

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
