package mtasts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/mtasts"
)

const most = 100

// FuzzParseRecord checks that limits are kept, that the validity follows from the
// problems, and that a valid record and its canonical form state the same.
func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		"v=STSv1; id=20160831085700Z;", "v=STSv1 ;id=a;; x=y; X==; ID=b ", "v=STSv1", "v=stsv1; id=1", "v=STSv1;id=a;id=b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, txt string) {
		r, ok := mtasts.ParseRecord(txt)
		if !ok {
			return
		}
		if r.Text != txt || len(r.Fields) > most || len(r.Problems) > most {
			t.Errorf("got text %q, %d fields, %d problems", r.Text, len(r.Fields), len(r.Problems))
		}
		if fatal := anyFatal(r.Problems); r.Valid && (fatal || r.ID == "") || !r.Valid && !fatal && len(r.Problems) < most {
			t.Errorf("got valid %v with id %q and %v", r.Valid, r.ID, r.Problems)
		}
		if !r.Valid {
			return
		}
		again, ok := mtasts.ParseRecord(r.String())
		if !ok || !again.Valid || again.ID != r.ID || len(again.Problems) > 0 {
			t.Errorf("canonical form %q: got %+v, want the id %q alone", r.String(), again, r.ID)
		}
	})
}

// FuzzParsePolicy checks that limits are kept, that the validity follows from the
// problems, that every pattern allows a host, and that a valid policy and its
// canonical form state the same.
func FuzzParsePolicy(f *testing.F) {
	for _, seed := range []string{
		goodPolicy, "version:STSv1\r\nmode:none\r\nmax_age:1", "", "mode: testing\n\nmx: *.*.x\nmx : a\nmax_age: 99999999999\nx: ü",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := mtasts.ParsePolicy(text)
		if p.Text != text || len(p.Problems) > most {
			t.Errorf("got text %q, %d problems", p.Text, len(p.Problems))
		}
		if fatal := anyFatal(p.Problems); p.Valid && fatal || !p.Valid && !fatal && len(p.Problems) < most {
			t.Errorf("got valid %v with %v", p.Valid, p.Problems)
		}
		for _, pattern := range p.MX {
			if h := strings.Replace(pattern, "*", "mail", 1); !p.Allows(h) {
				t.Errorf("got %q not allowed by the pattern %q", h, pattern)
			}
		}
		if !p.Valid || len(p.String()) > mtasts.MaxPolicySize {
			return
		}
		again := mtasts.ParsePolicy(p.String())
		if diff := cmp.Diff(p, again, cmpopts.IgnoreFields(mtasts.Policy{}, "Text", "Problems")); diff != "" {
			t.Errorf("the canonical form %q states something else (-policy +canonical):\n%s", p.String(), diff)
		}
	})
}

// FuzzMatchMX checks that a pattern without an asterisk matches itself alone, and
// that one with it matches names of as many labels only.
func FuzzMatchMX(f *testing.F) {
	f.Add("*.example.com", "mail.example.com")
	f.Add("mail.example.com.", "MAIL.example.com")
	f.Add("*.", ".")
	f.Fuzz(func(t *testing.T, pattern, host string) {
		if !mtasts.MatchMX(pattern, host) {
			return
		}
		pattern, host = strings.TrimSuffix(pattern, "."), strings.TrimSuffix(host, ".")
		if !strings.HasPrefix(pattern, "*.") && !strings.EqualFold(pattern, host) {
			t.Errorf("got a match of %q and %q, want one of equal names only", pattern, host)
		}
		if strings.Count(pattern, ".") != strings.Count(host, ".") {
			t.Errorf("got a match of %q and %q, want one of as many labels only", pattern, host)
		}
	})
}
