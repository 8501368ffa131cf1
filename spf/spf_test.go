package spf_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/spf"
)

func TestIsRecord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want bool
	}{
		{"v=spf1", true},
		{"v=spf1 ", true},
		{"V=SPF1 -all", true},
		{"", false},
		{"v=spf", false},
		{"v=spf10 -all", false},
		{"v=spf1-all", false},
		{"v=spf1\t-all", false},
		{" v=spf1 -all", false},
		{`"v=spf1 -all"`, false},
		{"v=spf2.0/pra -all", false},
		{"v=DMARC1; p=none", false},
	}
	for _, tt := range tests {
		if got := spf.IsRecord(tt.text); got != tt.want {
			t.Errorf("IsRecord(%q): got %v want %v", tt.text, got, tt.want)
		}
		if _, err := spf.Parse(tt.text); errors.Is(err, spf.ErrNotSPF) == tt.want {
			t.Errorf("Parse(%q): got error %v, want ErrNotSPF to be %v", tt.text, err, !tt.want)
		}
	}
}

// outline is a term as the tests write it down.
type outline struct {
	Kind         spf.TermKind
	Qualifier    spf.Result
	Domain       string
	Network      string
	Bits4, Bits6 int
	Name, Value  string
}

func outlineOf(t spf.Term) outline {
	o := outline{
		Kind: t.Kind, Qualifier: t.Qualifier, Domain: t.Domain.String(),
		Bits4: t.Bits4, Bits6: t.Bits6, Name: t.Name, Value: t.Value,
	}
	if t.Network != (netip.Prefix{}) {
		o.Network = t.Network.String()
	}
	return o
}

func TestParseTerms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		term string
		want outline
		// shortest is what String returns, the term itself where it is empty.
		shortest string
	}{
		{term: "all", want: outline{Kind: spf.All, Qualifier: spf.Pass}},
		{term: "+all", want: outline{Kind: spf.All, Qualifier: spf.Pass}, shortest: "all"},
		{term: "-all", want: outline{Kind: spf.All, Qualifier: spf.Fail}},
		{term: "~ALL", want: outline{Kind: spf.All, Qualifier: spf.SoftFail}, shortest: "~all"},
		{term: "?all", want: outline{Kind: spf.All, Qualifier: spf.Neutral}},
		{
			term: "include:_spf.example.com",
			want: outline{Kind: spf.Include, Qualifier: spf.Pass, Domain: "_spf.example.com"},
		},
		{
			term:     "-Include:Example.com.",
			want:     outline{Kind: spf.Include, Qualifier: spf.Fail, Domain: "Example.com."},
			shortest: "-include:Example.com.",
		},
		{term: "a", want: outline{Kind: spf.A, Qualifier: spf.Pass, Bits4: 32, Bits6: 128}},
		{term: "a/24", want: outline{Kind: spf.A, Qualifier: spf.Pass, Bits4: 24, Bits6: 128}},
		{term: "a//64", want: outline{Kind: spf.A, Qualifier: spf.Pass, Bits4: 32, Bits6: 64}},
		{
			term:     "mx:example.com/32//128",
			want:     outline{Kind: spf.MX, Qualifier: spf.Pass, Domain: "example.com", Bits4: 32, Bits6: 128},
			shortest: "mx:example.com",
		},
		{
			term: "mx:%{d2}/0//0",
			want: outline{Kind: spf.MX, Qualifier: spf.Pass, Domain: "%{d2}"},
		},
		{ // a slash may be part of a name, and of a macro
			term: "a:x/y.%{l/}.example.com/28",
			want: outline{Kind: spf.A, Qualifier: spf.Pass, Domain: "x/y.%{l/}.example.com", Bits4: 28, Bits6: 128},
		},
		{term: "ptr", want: outline{Kind: spf.PTR, Qualifier: spf.Pass}},
		{term: "?ptr:example.com", want: outline{Kind: spf.PTR, Qualifier: spf.Neutral, Domain: "example.com"}},
		{term: "ip4:192.0.2.1", want: outline{Kind: spf.IP4, Qualifier: spf.Pass, Network: "192.0.2.1/32"}},
		{term: "ip4:192.0.2.1/24", want: outline{Kind: spf.IP4, Qualifier: spf.Pass, Network: "192.0.2.1/24"}},
		{
			term:     "ip6:2001:DB8::/32",
			want:     outline{Kind: spf.IP6, Qualifier: spf.Pass, Network: "2001:db8::/32"},
			shortest: "ip6:2001:db8::/32",
		},
		{term: "ip6:::", want: outline{Kind: spf.IP6, Qualifier: spf.Pass, Network: "::/128"}},
		{
			term: "exists:%{ir}.%{l1r+-}._spf.%{D}",
			want: outline{Kind: spf.Exists, Qualifier: spf.Pass, Domain: "%{ir}.%{l1r+-}._spf.%{D}"},
		},
		{ // the grammar lets a domain-spec end in any macro, these too
			term: "exists:a%%b%_%-",
			want: outline{Kind: spf.Exists, Qualifier: spf.Pass, Domain: "a%%b%_%-"},
		},
		{
			term: "exists:%{d99999999999999999999}",
			want: outline{Kind: spf.Exists, Qualifier: spf.Pass, Domain: "%{d99999999999999999999}"},
		},
		{term: "redirect=example.1-a", want: outline{Kind: spf.Redirect, Domain: "example.1-a"}},
		{term: "EXP=%{d}", want: outline{Kind: spf.Exp, Domain: "%{d}"}, shortest: "exp=%{d}"},
		{
			term:     "Moo.cow-far_out=man:dog/cat",
			want:     outline{Kind: spf.Unknown, Name: "Moo.cow-far_out", Value: "man:dog/cat"},
			shortest: "moo.cow-far_out=man:dog/cat",
		},
		{term: "x=", want: outline{Kind: spf.Unknown, Name: "x"}},
		{term: "x=%{c}%{R}%{t}", want: outline{Kind: spf.Unknown, Name: "x", Value: "%{c}%{R}%{t}"}},
	}
	for _, tt := range tests {
		t.Run(tt.term, func(t *testing.T) {
			t.Parallel()
			text := "v=spf1  " + tt.term + " "
			r, err := spf.Parse(text)
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if r.Text != text || r.String() != text {
				t.Errorf("got text %q and string %q, want %q", r.Text, r.String(), text)
			}
			if len(r.Terms) != 1 {
				t.Fatalf("got %d terms, want 1", len(r.Terms))
			}
			got := r.Terms[0]
			if got.Text != tt.term || got.Offset != 8 {
				t.Errorf("got text %q at %d, want %q at 8", got.Text, got.Offset, tt.term)
			}
			if diff := cmp.Diff(tt.want, outlineOf(got)); diff != "" {
				t.Errorf("term (-want +got):\n%s", diff)
			}
			want := tt.shortest
			if want == "" {
				want = tt.term
			}
			if got.String() != want {
				t.Errorf("got shortest form %q, want %q", got.String(), want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		record string
		kind   spf.Kind
		offset int
		text   string
	}{
		{"v=spf1 -all\ta", spf.InvalidCharacter, 11, "\t"},
		{"v=spf1 a:\xc3\xa4.example -all", spf.InvalidCharacter, 9, "\xc3"},
		{"v=spf1 a\x00 -all", spf.InvalidCharacter, 8, "\x00"},
		{"v=spf1 !", spf.MalformedTerm, 7, "!"},
		{"v=spf1 -", spf.MalformedTerm, 7, "-"},
		{"v=spf1 =all", spf.MalformedTerm, 7, "=all"},
		{"v=spf1 1up=foo", spf.MalformedTerm, 7, "1up=foo"},
		{"v=spf1 --all", spf.MalformedTerm, 7, "--all"},
		{"v=spf1 all;", spf.MalformedTerm, 7, "all;"},
		{"v=spf1 ip4:192.0.2.1 -all moo", spf.UnknownMechanism, 26, "moo"},
		{"v=spf1 ~ipv4:192.0.2.1", spf.UnknownMechanism, 8, "ipv4"},
		{"v=spf1 redirect:example.com", spf.UnknownMechanism, 7, "redirect"},
		{"v=spf1 -all.", spf.UnknownMechanism, 8, "all."},
		{"v=spf1 ?redirect=example.com", spf.QualifiedModifier, 7, "?redirect=example.com"},
		{"v=spf1 exp=a.example EXP=b.example", spf.RepeatedModifier, 21, "EXP=b.example"},
		{"v=spf1 redirect=a.example redirect=a.example", spf.RepeatedModifier, 26, "redirect=a.example"},
		{"v=spf1 include", spf.MissingValue, 7, "include"},
		{"v=spf1 include: a.example", spf.MissingValue, 7, "include:"},
		{"v=spf1 exists", spf.MissingValue, 7, "exists"},
		{"v=spf1 a: -all", spf.MissingValue, 7, "a:"},
		{"v=spf1 mx:/24", spf.MissingValue, 7, "mx:/24"},
		{"v=spf1 ptr:", spf.MissingValue, 7, "ptr:"},
		{"v=spf1 ip4", spf.MissingValue, 7, "ip4"},
		{"v=spf1 ip6:", spf.MissingValue, 7, "ip6:"},
		{"v=spf1 redirect=", spf.MissingValue, 7, "redirect="},
		{"v=spf1 exp=", spf.MissingValue, 7, "exp="},
		{"v=spf1 -all:example.com", spf.UnexpectedValue, 11, ":example.com"},
		{"v=spf1 all/8", spf.UnexpectedValue, 10, "/8"},
		{"v=spf1 ptr/24", spf.UnexpectedValue, 10, "/24"},
		{"v=spf1 include/24", spf.UnexpectedValue, 14, "/24"},
		{"v=spf1 a/24/28", spf.UnexpectedValue, 8, "/24/28"},
		{"v=spf1 a/24/64", spf.InvalidPrefixLength, 11, "/64"},
		{"v=spf1 a:museum", spf.InvalidDomain, 9, "museum"},
		{"v=spf1 a:museum.", spf.InvalidDomain, 9, "museum."},
		{"v=spf1 a:example.123", spf.InvalidDomain, 9, "example.123"},
		{"v=spf1 a:example.-com", spf.InvalidDomain, 9, "example.-com"},
		{"v=spf1 a:example.com-", spf.InvalidDomain, 9, "example.com-"},
		{"v=spf1 a:example.com:8080", spf.InvalidDomain, 9, "example.com:8080"},
		{"v=spf1 exists:example.com..", spf.InvalidDomain, 14, "example.com.."},
		{"v=spf1 exists:%{d}com", spf.InvalidDomain, 14, "%{d}com"},
		{"v=spf1 exists:%%com", spf.InvalidDomain, 14, "%%com"},
		{"v=spf1 include:example.com/24", spf.InvalidDomain, 15, "example.com/24"},
		{"v=spf1 redirect=-all", spf.InvalidDomain, 16, "-all"},
		{"v=spf1 a:192.0.2.1", spf.AddressAsDomain, 9, "192.0.2.1"},
		{"v=spf1 mx:192.0.2.0/24", spf.AddressAsDomain, 10, "192.0.2.0"},
		{"v=spf1 include:2001:db8::1", spf.AddressAsDomain, 15, "2001:db8::1"},
		{"v=spf1 exists:%(i).example.com", spf.InvalidMacro, 14, "%("},
		{"v=spf1 exists:a%.example.com", spf.InvalidMacro, 15, "%."},
		{"v=spf1 exists:example.com%", spf.InvalidMacro, 25, "%"},
		{"v=spf1 exists:%{", spf.InvalidMacro, 14, "%{"},
		{"v=spf1 exists:%{}", spf.InvalidMacro, 14, "%{}"},
		{"v=spf1 exists:%{d", spf.InvalidMacro, 14, "%{d"},
		{"v=spf1 exists:%{x}", spf.InvalidMacro, 14, "%{x}"},
		{"v=spf1 exists:%{d0}", spf.InvalidMacro, 14, "%{d0}"},
		{"v=spf1 exists:%{dr2}", spf.InvalidMacro, 14, "%{dr2}"},
		{"v=spf1 exists:%{d:}", spf.InvalidMacro, 14, "%{d:}"},
		{"v=spf1 a:%{c}", spf.InvalidMacro, 9, "%{c}"},
		{"v=spf1 -all exp=%{r}.example", spf.InvalidMacro, 16, "%{r}"},
		{"v=spf1 -all foo=%abc", spf.InvalidMacro, 16, "%a"},
		{"v=spf1 -all foo=x%abc", spf.InvalidMacro, 17, "%a"},
		{"v=spf1 ip4:192.0.2", spf.InvalidAddress, 11, "192.0.2"},
		{"v=spf1 ip4:192.0.2.1:25", spf.InvalidAddress, 11, "192.0.2.1:25"},
		{"v=spf1 ip4:192.0.2.01", spf.InvalidAddress, 11, "192.0.2.01"},
		{"v=spf1 ip4:2001:db8::1", spf.InvalidAddress, 11, "2001:db8::1"},
		{"v=spf1 ip4:mail.example.com", spf.InvalidAddress, 11, "mail.example.com"},
		{"v=spf1 ip4:192.0.2.1//32", spf.InvalidAddress, 11, "192.0.2.1/"},
		{"v=spf1 ip4/24", spf.InvalidAddress, 10, ""},
		{"v=spf1 ip6:192.0.2.1", spf.InvalidAddress, 11, "192.0.2.1"},
		{"v=spf1 ip6:bogus", spf.InvalidAddress, 11, "bogus"},
		{"v=spf1 ip6:2001:db8::1%eth0", spf.InvalidAddress, 11, "2001:db8::1%eth0"},
		{"v=spf1 ip4:192.0.2.1/33", spf.InvalidPrefixLength, 20, "/33"},
		{"v=spf1 ip4:192.0.2.1/", spf.InvalidPrefixLength, 20, "/"},
		{"v=spf1 ip4:192.0.2.1/032", spf.InvalidPrefixLength, 20, "/032"},
		{"v=spf1 ip6:2001:db8::/129", spf.InvalidPrefixLength, 21, "/129"},
		{"v=spf1 a/33", spf.InvalidPrefixLength, 8, "/33"},
		{"v=spf1 a/", spf.InvalidPrefixLength, 8, "/"},
		{"v=spf1 a//", spf.InvalidPrefixLength, 8, "//"},
		{"v=spf1 mx:example.com/24//1280", spf.InvalidPrefixLength, 21, "/24//1280"},
	}
	for _, tt := range tests {
		t.Run(tt.record, func(t *testing.T) {
			t.Parallel()
			r, err := spf.Parse(tt.record)
			var syntax *spf.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got error %v, want a SyntaxError", err)
			}
			p := syntax.Problem
			if p.Kind != tt.kind || p.Offset != tt.offset || p.Text != tt.text {
				t.Errorf("got %s %q at %d, want %s %q at %d", p.Kind, p.Text, p.Offset, tt.kind, tt.text, tt.offset)
			}
			if !p.Kind.Permanent() {
				t.Errorf("got a kind that is not permanent: %s", p.Kind)
			}
			if !strings.Contains(tt.record, p.Term) || p.Term == "" {
				t.Errorf("got term %q, want one of the record", p.Term)
			}
			if diff := cmp.Diff(p, r.Problems[0], comparePrefixes); diff != "" {
				t.Errorf("first problem of the record (-error +record):\n%s", diff)
			}
		})
	}
}

// comparePrefixes lets cmp compare addresses, whose fields are not exported.
var comparePrefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestLongErrorIsCut(t *testing.T) {
	t.Parallel()
	for _, length := range []int{80, 81} {
		_, err := spf.Parse("v=spf1 " + strings.Repeat("q", length))
		want := strings.Repeat("q", 80)
		if length > 80 {
			want += "..."
		}
		if err == nil || !strings.Contains(err.Error(), `"`+want+`"`) {
			t.Errorf("%d bytes: got %v, want %q", length, err, want)
		}
	}
}

func TestParseReportsEveryError(t *testing.T) {
	t.Parallel()
	r, err := spf.Parse("v=spf1 ip4:1.2.3 a mx/99 exp=a.example exp=b.example -all")
	if want := `invalid-address "1.2.3" at byte 11`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	var kinds []spf.Kind
	for _, p := range r.Problems {
		kinds = append(kinds, p.Kind)
	}
	want := []spf.Kind{spf.InvalidAddress, spf.InvalidPrefixLength, spf.RepeatedModifier}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := r.Problems[2].Other; got != (spf.Position{Term: "exp=a.example", Offset: 25}) {
		t.Errorf("got the first exp at %+v, want exp=a.example at 25", got)
	}
	if got := r.Terms[0]; got.Kind != spf.Invalid || got.String() != "ip4:1.2.3" {
		t.Errorf("got term %v of kind %v, want the text of an invalid one", got, got.Kind)
	}
}

// TestParseHostile holds the bound on what one record can cost in memory.
func TestParseHostile(t *testing.T) {
	t.Parallel()
	const size = 60_000
	for _, unit := range []string{" a", " !", " ip4:0.0.0.0/0", " %", " ", " ptr", " include:%{d}"} {
		r, err := spf.Parse("v=spf1" + strings.Repeat(unit, size/len(unit)))
		if errors.Is(err, spf.ErrNotSPF) {
			t.Errorf("%q: got %v, want an SPF record", unit, err)
		}
		if len(r.Problems) > 200 {
			t.Errorf("%q: got %d problems, want at most 200", unit, len(r.Problems))
		}
	}
	_, err := spf.Parse("v=spf1 " + strings.Repeat("x", size))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("got %v, want a short error", err)
	}
}

// TestWords holds the words that are stored and shown elsewhere.
func TestWords(t *testing.T) {
	t.Parallel()
	for word, value := range map[string]fmt.Stringer{
		"none": spf.None, "neutral": spf.Neutral, "pass": spf.Pass, "fail": spf.Fail,
		"softfail": spf.SoftFail, "temperror": spf.TempError, "permerror": spf.PermError,
		"invalid": spf.Invalid, "all": spf.All, "include": spf.Include, "a": spf.A, "mx": spf.MX,
		"ptr": spf.PTR, "ip4": spf.IP4, "ip6": spf.IP6, "exists": spf.Exists,
		"redirect": spf.Redirect, "exp": spf.Exp, "unknown": spf.Unknown,
		"": spf.AnyFamily, "IPv4": spf.IPv4, "IPv6": spf.IPv6,
	} {
		if got := value.String(); got != word {
			t.Errorf("got %q, want %q", got, word)
		}
	}
	if got := (spf.Unknown + 1).String(); got != "invalid" {
		t.Errorf("a kind that does not exist: got %q, want invalid", got)
	}
	for kind := spf.All; kind <= spf.Unknown; kind++ {
		if got, want := kind.Modifier(), kind == spf.Redirect || kind == spf.Exp || kind == spf.Unknown; got != want {
			t.Errorf("%s is a modifier: got %t, want %t", kind, got, want)
		}
	}
}
