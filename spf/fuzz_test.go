package spf_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dmarcd/dmarcd/spf"
)

// FuzzParse holds what must be true of any text: the record is kept byte for
// byte, terms and problems lie inside of it, there is an error exactly if there
// is a problem that makes one, and every term means the same in its shortest
// form.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"v=spf1", "v=spf1 -all", "V=SPF1  mx  ~all ", "v=spf1 a:%{d2}/24//64 ?include:_spf.%{o} exp=%{ir}.x.example",
		"v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 redirect=example.com x=%{c}%%%_%-",
		"v=spf1 a:b/c:d.example/0 exists:%{l1r+-}.%{d} ptr:example.com +all moo",
		"v=spf1 ip6:::ffff:1.2.3.4/96 exp=exp.example exp=exp.example", "v=spf1 \x00\xff %{ a:%",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := spf.Parse(text)
		if spf.IsRecord(text) == errors.Is(err, spf.ErrNotSPF) {
			t.Fatalf("IsRecord and Parse disagree: %v", err)
		}
		again, _ := spf.Parse(r.String())
		if !reflect.DeepEqual(r, again) || r.Text != text {
			t.Fatalf("got %+v from the string of %+v", again, r)
		}
		permanent := false
		for _, p := range r.Problems {
			permanent = permanent || p.Kind.Permanent()
			if p.Offset < 0 || p.Offset+len(p.Text) > len(text) || text[p.Offset:p.Offset+len(p.Text)] != p.Text {
				t.Errorf("problem %+v does not lie in the record", p)
			}
		}
		if permanent != (err != nil && !errors.Is(err, spf.ErrNotSPF)) {
			t.Errorf("got error %v with problems %+v", err, r.Problems)
		}
		if len(r.Problems) > 200 {
			t.Errorf("got %d problems, want at most 200", len(r.Problems))
		}
		end := 0
		for _, term := range r.Terms {
			if term.Offset <= end || text[term.Offset:term.Offset+len(term.Text)] != term.Text {
				t.Fatalf("term %+v does not lie in the record behind byte %d", term, end)
			}
			end = term.Offset + len(term.Text)
			checkShortest(t, term)
		}
	})
}

// checkShortest parses the shortest form of a term, which must be shortest
// already and mean the same.
func checkShortest(t *testing.T, term spf.Term) {
	t.Helper()
	if term.Kind == spf.Invalid {
		return
	}
	r, err := spf.Parse("v=spf1 " + term.String())
	if err != nil || len(r.Terms) != 1 {
		t.Fatalf("the shortest form %q of %q: %v", term, term.Text, err)
	}
	got := r.Terms[0]
	if got.String() != term.String() {
		t.Errorf("got %q as the shortest form of %q", got, term)
	}
	got.Text, got.Offset, got.Name = term.Text, term.Offset, term.Name
	if !reflect.DeepEqual(got, term) {
		t.Errorf("got %+v from the shortest form of %+v", got, term)
	}
}
