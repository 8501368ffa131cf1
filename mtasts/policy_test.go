package mtasts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/mtasts"
)

// week is the shortest max_age without a remark.
const week = 7 * 24 * time.Hour

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	type problems = []mtasts.Problem
	enforce := func(mx ...string) mtasts.Policy {
		return mtasts.Policy{Mode: mtasts.ModeEnforce, MaxAge: week, MX: mx}
	}
	with := func(p mtasts.Policy, problems ...mtasts.Problem) mtasts.Policy {
		p.Problems = problems
		return p
	}
	const head = "version: STSv1\nmode: enforce\nmax_age: 604800\n"
	for _, tt := range []struct {
		name string
		text string
		want mtasts.Policy // without Text and Valid
	}{
		{
			name: "RFC 8461 3.2", text: "version: STSv1\nmode: enforce\nmx: mail.example.com\nmx: *.example.net\nmx: backupmx.example.com\nmax_age: 604800\n",
			want: enforce("mail.example.com", "*.example.net", "backupmx.example.com"),
		},
		{name: "CRLF", text: strings.ReplaceAll(head+"mx: a.example", "\n", "\r\n"), want: enforce("a.example")},
		{name: "no white space, and some after values", text: "version:STSv1 \nmode:enforce\t\nmax_age:604800 \t\r\nmx:a.example", want: enforce("a.example")},
		{name: "any order", text: "mx: a.example\nmax_age: 604800\nmode: enforce\nversion: STSv1\n", want: enforce("a.example")},
		{name: "patterns in any case", text: head + "mx: *.Example.COM", want: enforce("*.example.com")},
		{
			name: "testing", text: "version: STSv1\nmode: testing\nmx: a.example\nmax_age: 31557600\n",
			want: mtasts.Policy{Mode: mtasts.ModeTesting, MaxAge: 31557600 * time.Second, MX: []string{"a.example"}},
		},
		{name: "none needs no hosts and may be short", text: "version: STSv1\nmode: none\nmax_age: 0", want: mtasts.Policy{Mode: mtasts.ModeNone}},
		{
			name: "empty", text: "",
			want: mtasts.Policy{Problems: problems{
				{Kind: mtasts.MissingField, Field: "version"},
				{Kind: mtasts.MissingField, Field: "mode"},
				{Kind: mtasts.MissingField, Field: "max_age"},
				{Kind: mtasts.MissingField, Field: "mx"},
			}},
		},
		{
			name: "another version", text: "version: STSv2\nmode: enforce\nmax_age: 604800\nmx: a.example",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.InvalidValue, Field: "version", Text: "STSv2", Line: 1}),
		},
		{
			name: "an unknown mode", text: "version: STSv1\nmode: Enforce\nmax_age: 604800\nmx: a.example",
			want: mtasts.Policy{MaxAge: week, MX: []string{"a.example"}, Problems: problems{{Kind: mtasts.InvalidValue, Field: "mode", Text: "Enforce", Line: 2}}},
		},
		{name: "no hosts", text: head, want: with(enforce(), mtasts.Problem{Kind: mtasts.MissingField, Field: "mx"})},
		{
			name: "a day", text: "version: STSv1\nmode: enforce\nmax_age: 86400\nmx: a.example",
			want: mtasts.Policy{
				Mode: mtasts.ModeEnforce, MaxAge: 24 * time.Hour, MX: []string{"a.example"},
				Problems: problems{{Kind: mtasts.ShortMaxAge, Field: "max_age", Count: 86400, Limit: 604800}},
			},
		},
		{
			name: "less than a day", text: "version: STSv1\nmode: testing\nmax_age: 86399\nmx: a.example",
			want: mtasts.Policy{
				Mode: mtasts.ModeTesting, MaxAge: 86399 * time.Second, MX: []string{"a.example"},
				Problems: problems{{Kind: mtasts.ShortMaxAge, Field: "max_age", Count: 86399, Limit: 86400}},
			},
		},
		{
			name: "more than a year", text: "version: STSv1\nmode: enforce\nmax_age: 31557601\nmx: a.example",
			want: mtasts.Policy{
				Mode: mtasts.ModeEnforce, MX: []string{"a.example"},
				Problems: problems{{Kind: mtasts.LongMaxAge, Field: "max_age", Text: "31557601", Line: 3, Count: 31557601, Limit: 31557600}},
			},
		},
		{name: "ten digits", text: "version: STSv1\nmode: none\nmax_age: 0000604800", want: mtasts.Policy{Mode: mtasts.ModeNone, MaxAge: week}},
		{
			name: "eleven digits", text: "version: STSv1\nmode: none\nmax_age: 00000604800",
			want: mtasts.Policy{Mode: mtasts.ModeNone, Problems: problems{{Kind: mtasts.InvalidValue, Field: "max_age", Text: "00000604800", Line: 3}}},
		},
		{
			name: "a negative number", text: "version: STSv1\nmode: none\nmax_age: -1",
			want: mtasts.Policy{Mode: mtasts.ModeNone, Problems: problems{{Kind: mtasts.InvalidValue, Field: "max_age", Text: "-1", Line: 3}}},
		},
		{
			name: "the first of two counts", text: head + "mode: none\nmx: a.example\nmax_age: x",
			want: with(enforce("a.example"),
				mtasts.Problem{Kind: mtasts.DuplicateField, Field: "mode", Text: "none", Line: 4},
				mtasts.Problem{Kind: mtasts.DuplicateField, Field: "max_age", Text: "x", Line: 6}),
		},
		{
			name: "a host twice", text: head + "mx: a.example\nmx: A.example",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.DuplicateMX, Field: "mx", Text: "A.example", Line: 5}),
		},
		{
			name: "an unknown field", text: head + "mx: a.example\nx-1.y_z: some text: ü\n",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.UnknownField, Field: "x-1.y_z", Text: "some text: ü", Line: 5}),
		},
		{
			name: "a field in upper case", text: head + "MX: a.example\nmx: b.example",
			want: with(enforce("b.example"), mtasts.Problem{Kind: mtasts.FieldCase, Field: "mx", Text: "MX", Line: 4}),
		},
		{
			name: "an empty line", text: head + "\n \t\nmx: a.example\n",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.EmptyLine, Line: 4}, mtasts.Problem{Kind: mtasts.EmptyLine, Line: 5}),
		},
		{
			name: "no colon", text: head + "mx: a.example\nmx b.example",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: "mx b.example", Line: 5}),
		},
		{
			name: "white space before the name", text: head + "mx: a.example\n mx: b.example",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: " mx: b.example", Line: 5}),
		},
		{
			name: "white space before the colon", text: head + "mx: a.example\nmx : b.example",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: "mx : b.example", Line: 5}),
		},
		{
			name: "no value", text: head + "mx: a.example\nmx: ",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: "mx:", Line: 5}),
		},
		{
			name: "a control character", text: head + "mx: a.example\nx: a\x00b",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: "x: a\x00b", Line: 5}),
		},
		{
			name: "not UTF-8", text: head + "mx: a.example\nx: a\xffb",
			want: with(enforce("a.example"), mtasts.Problem{Kind: mtasts.MalformedField, Text: "x: a\xffb", Line: 5}),
		},
		{
			name: "a byte order mark", text: "\ufeff" + head + "mx: a.example",
			want: with(enforce("a.example"),
				mtasts.Problem{Kind: mtasts.MalformedField, Text: "\ufeffversion: STSv1", Line: 1},
				mtasts.Problem{Kind: mtasts.MissingField, Field: "version"}),
		},
		{
			name: "too large", text: head + "mx: a.example\nx: " + strings.Repeat("y", mtasts.MaxPolicySize),
			want: mtasts.Policy{Problems: problems{{Kind: mtasts.TooLarge, Limit: 65536}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			want.Text, want.Valid = tt.text, !anyFatal(want.Problems)
			if diff := cmp.Diff(want, mtasts.ParsePolicy(tt.text)); diff != "" {
				t.Errorf("got another policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParsePolicyPatterns(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"mail.example.com":   true,
		"*.example.com":      true,
		"*.xn--bcher-kva.de": true,
		"localhost":          true,
		"*":                  false,
		"*.":                 false,
		".example.com":       false,
		"**.example.com":     false,
		"*.*.example.com":    false,
		"a.*.example.com":    false,
		"mail.example.com.":  false,
		"mail..example.com":  false,
		"-mail.example.com":  false,
		"mail-.example.com":  false,
		"ma_il.example.com":  false,
		"bücher.de":          false,
		"mail.example.com:1": false,
		"a b":                false,
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			got := mtasts.ParsePolicy("version: STSv1\nmode: enforce\nmax_age: 604800\nmx: " + pattern)
			if got.Valid != want || (len(got.MX) == 1) != want {
				t.Errorf("got valid %v with %q, want %v", got.Valid, got.MX, want)
			}
		})
	}
}

func TestParsePolicyReturnsFewProblems(t *testing.T) {
	t.Parallel()
	got := mtasts.ParsePolicy("version: STSv1\nmode: none\nmax_age: 1\n" + strings.Repeat("\n", 100) + "bad")
	if len(got.Problems) != 100 || got.Valid {
		t.Errorf("got %d problems, valid %v; want 100 and a policy that is invalid for the last", len(got.Problems), got.Valid)
	}
}

func TestMatchMX(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, host string
		want          bool
	}{
		{"mail.example.com", "mail.example.com", true},
		{"mail.example.com", "MAIL.Example.com.", true},
		{"mail.example.com", "a.mail.example.com", false},
		{"mail.example.com", "example.com", false},
		{"*.example.com", "mail.example.com", true}, // 94
		{"*.example.com", "example.com", false},     // 94
		{"*.example.com", "a.b.example.com", false}, // 94
		{"*.EXAMPLE.com", "Mail.example.COM", true},
		{"*.example.com", ".example.com", false},
		{"*.example.com", "mailexample.com", false},
		{"*.example.com", "*.example.com", true}, // a label like any other
		{"*", "com", false},
		{"*.", "com", false},
		{"", "", false},
		{"a.*.example.com", "a.b.example.com", false},
		{"*.example.com", "mail.example.com.net", false},
	} {
		t.Run(tt.pattern+" "+tt.host, func(t *testing.T) {
			t.Parallel()
			if got := mtasts.MatchMX(tt.pattern, tt.host); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	p := mtasts.Policy{MX: []string{"a.example", "*.b.example"}}
	for host, want := range map[string]bool{"a.example": true, "x.b.example.": true, "b.example": false, "": false} {
		if got := p.Allows(host); got != want {
			t.Errorf("%q: got %v, want %v", host, got, want)
		}
	}
}
