package foreign_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/internal/intake/foreign"
)

// repeated yields a text n times.
type repeated struct {
	text string
	n    int
	left string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.left = r.text
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// endless is a text, another one very often, and a last one.
func endless(before, text string, n int, after string) io.Reader {
	block := strings.Repeat(text, 1000)
	return io.MultiReader(strings.NewReader(before), &repeated{text: block, n: n / 1000}, strings.NewReader(after))
}

// packed is a reader in gzip.
func packed(in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err == nil {
			_, err = io.Copy(z, in)
			err = errors.Join(err, z.Close())
		}
		_ = w.CloseWithError(err) // never fails
	}()
	return r
}

// TestHostile reads files that would need any amount of memory, of stack or of disk.
func TestHostile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	const mega = 1 << 20
	manyMembers := `{"0":0`
	for i := range 300 {
		manyMembers += fmt.Sprintf(`,"m%d":0`, i)
	}
	longNames := strings.NewReader("{" + fmt.Sprintf(`"a%[1]s":1,"b%[1]s":1,"c%[1]s":1,"d%[1]s":1`, strings.Repeat("x", 10*mega)))
	for _, tt := range []struct {
		name    string
		in      io.Reader
		invalid string // a part of the only error about a line
		fatal   string // a part of the error that ends the file
	}{
		{name: "nested arrays", in: endless("", "[", 30*mega, ""), fatal: "line 1: arrays and objects are nested too deeply"},
		{name: "nested objects", in: endless("", `{"aggregate_reports":`, 5*mega, ""), fatal: "nested too deeply"},
		{name: "long names of members", in: longNames, fatal: "more than 33554432 bytes"},
		{name: "many members", in: strings.NewReader(manyMembers), fatal: "200 members"},
		{name: "a long record", in: endless(`{"records":[{"auth_results":{"dkim":[{}`, ",{}", mega, `]}}]}`), invalid: "it is longer than 1048576 bytes"},
		{name: "many policies", in: endless(`{"policies":[{}`, ",{}", 2*mega, `]}`), invalid: "more than 1000000 items"},
		{name: "a long text", in: endless(`{"report_metadata":"`, "x", 40*mega, ""), fatal: "longer than 33554432 bytes"},
		{name: "gzip that expands", in: packed(endless("", "\n", 100*mega, "")), fatal: "more than 200 times its size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var invalid, fatal string
			for _, err := range foreign.Split(tt.in, t.TempDir()) {
				switch {
				case errors.Is(err, dmarcd.ErrInvalid):
					invalid += err.Error()
				case err != nil && !errors.Is(err, dmarcd.ErrLimit):
					t.Errorf("got %v, want ErrInvalid or ErrLimit", err)
				case err != nil:
					fatal += err.Error()
				}
			}
			if !strings.Contains(invalid, tt.invalid) || !strings.Contains(fatal, tt.fatal) || (fatal == "") != (tt.fatal == "") {
				t.Errorf("got %.300q and %.300q, want %q and %q", invalid, fatal, tt.invalid, tt.fatal)
			}
		})
	}
}

// TestManyLines reads short records behind a long one, which the decoder reads ahead.
func TestManyLines(t *testing.T) {
	read := func(records int) func() {
		return func() {
			in := endless(`{"records":["`+strings.Repeat("x", 8<<20)+`"`, ",{}\n", records, "]}")
			for _, err := range foreign.Split(in, t.TempDir()) {
				if !errors.Is(err, dmarcd.ErrInvalid) {
					t.Fatal(err)
				}
			}
		}
	}
	costtest.AtMost(t, 30, read(10_000), read(200_000))
}
