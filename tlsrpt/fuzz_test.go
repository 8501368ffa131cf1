package tlsrpt_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/tlsrpt"
)

// FuzzParseRecord checks that limits hold, that validity follows from the problems, and
// that a valid record and its canonical form are equivalent.
func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		"v=TLSRPTv1;rua=mailto:reports@example.com", "v=TLSRPTv1 ;; rua=https://a.example/x?y=z , mailto:a%2Cb@c ;x=y; X==; RUA=b ",
		"v=TLSRPTv1", "v=tlsrptv1; rua=mailto:a@b", "v=TLSRPTv1;rua=http://a;rua=mailto:,",
	} {
		f.Add(seed)
	}
	const most = 100
	f.Fuzz(func(t *testing.T, txt string) {
		r, ok := tlsrpt.ParseRecord(txt)
		if !ok {
			return
		}
		if r.Text != txt || len(r.Fields) > most || len(r.RUA) > most || len(r.Problems) > most {
			t.Errorf("got text %q, %d fields, %d URIs, %d problems", r.Text, len(r.Fields), len(r.RUA), len(r.Problems))
		}
		if fatal := anyFatal(r.Problems); r.Valid && (fatal || len(r.RUA) == 0) || !r.Valid && !fatal && len(r.Problems) < most {
			t.Errorf("got valid %v with %v and %v", r.Valid, r.RUA, r.Problems)
		}
		if !r.Valid {
			return
		}
		again, ok := tlsrpt.ParseRecord(r.String())
		if !ok || !again.Valid {
			t.Fatalf("canonical form %q: got %+v, want a valid record", r.String(), again)
		}
		if diff := cmp.Diff(r.RUA, again.RUA); diff != "" {
			t.Errorf("the canonical form %q states something else (-record +canonical):\n%s", r.String(), diff)
		}
	})
}
