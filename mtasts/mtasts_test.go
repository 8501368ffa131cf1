package mtasts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/mtasts"
)

func TestParseRecord(t *testing.T) {
	t.Parallel()
	type problems = []mtasts.Problem
	const long = "a2345678901234567890123456789012" // 32 characters
	for _, tt := range []struct {
		name string
		txt  string
		want mtasts.Record // without Text, Fields and Valid
	}{
		{name: "95 RFC 8461 3.1", txt: "v=STSv1; id=20160831085700Z;", want: mtasts.Record{ID: "20160831085700Z"}},
		{name: "without white space", txt: "v=STSv1;id=1", want: mtasts.Record{ID: "1"}},
		{name: "white space around the semicolons", txt: "v=STSv1; \tid=1 \t; x=y\t; ", want: mtasts.Record{ID: "1", Problems: problems{{Kind: mtasts.UnknownField, Field: "x", Text: "y"}}}},
		{name: "longest id", txt: "v=STSv1; id=" + long, want: mtasts.Record{ID: long}},
		{name: "id too long", txt: "v=STSv1; id=" + long + "3", want: mtasts.Record{Problems: problems{{Kind: mtasts.InvalidValue, Field: "id", Text: long + "3"}}}},
		{name: "95 id with a hyphen", txt: "v=STSv1; id=2016-08-31", want: mtasts.Record{Problems: problems{{Kind: mtasts.InvalidValue, Field: "id", Text: "2016-08-31"}}}},
		{name: "no id", txt: "v=STSv1;", want: mtasts.Record{Problems: problems{{Kind: mtasts.MissingField, Field: "id"}}}},
		{
			name: "empty id", txt: "v=STSv1; id=",
			want: mtasts.Record{Problems: problems{{Kind: mtasts.MalformedField, Text: "id="}, {Kind: mtasts.MissingField, Field: "id"}}},
		},
		{name: "the first id counts", txt: "v=STSv1; id=a; id=-", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.DuplicateField, Field: "id", Text: "-"}}}},
		{
			name: "id in upper case", txt: "v=STSv1; ID=a",
			want: mtasts.Record{Problems: problems{{Kind: mtasts.FieldCase, Field: "id", Text: "ID"}, {Kind: mtasts.MissingField, Field: "id"}}},
		},
		{
			name: "white space around the equals sign", txt: "v=STSv1; id = a",
			want: mtasts.Record{Problems: problems{{Kind: mtasts.MalformedField, Text: "id = a"}, {Kind: mtasts.MissingField, Field: "id"}}},
		},
		{name: "extensions", txt: "v=STSv1; 0_-.=!~:<>; id=a", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.UnknownField, Field: "0_-.", Text: "!~:<>"}}}},
		{name: "an extension with two equals signs", txt: "v=STSv1; id=a; x==", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.MalformedField, Text: "x=="}}}},
		{name: "an extension with a space", txt: "v=STSv1; id=a; x=b c", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.MalformedField, Text: "x=b c"}}}},
		{name: "an extension that begins with a hyphen", txt: "v=STSv1; id=a; -x=b", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.MalformedField, Text: "-x=b"}}}},
		{name: "an extension with a name too long", txt: "v=STSv1; id=a; " + long + "3=b", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.MalformedField, Text: long + "3=b"}}}},
		{name: "no equals sign", txt: "v=STSv1; id=a; x", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.MalformedField, Text: "x"}}}},
		{name: "two semicolons", txt: "v=STSv1; id=a;;", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.EmptyField}}}},
		{name: "white space before the first semicolon", txt: "v=STSv1 ; id=a", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.SpacedVersion}}}},
		{name: "white space at the end", txt: "v=STSv1; id=a ", want: mtasts.Record{ID: "a", Problems: problems{{Kind: mtasts.TrailingSpace}}}},
		{
			name: "too many fields", txt: "v=STSv1; id=a" + strings.Repeat("; x=y", 100),
			want: mtasts.Record{ID: "a", Problems: append(append(
				problems{{Kind: mtasts.UnknownField, Field: "x", Text: "y"}},
				repeat(mtasts.Problem{Kind: mtasts.DuplicateField, Field: "x", Text: "y"}, 98)...),
				mtasts.Problem{Kind: mtasts.TooManyFields, Text: "x=y"})},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := tt.want
			want.Text, want.Valid = tt.txt, !anyFatal(want.Problems)
			got, ok := mtasts.ParseRecord(tt.txt)
			if !ok {
				t.Fatal("got no record, want one")
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(mtasts.Record{}, "Fields")); diff != "" {
				t.Errorf("got another record (-want +got):\n%s", diff)
			}
		})
	}
}

// repeat returns n times the same problem.
func repeat(p mtasts.Problem, n int) []mtasts.Problem {
	problems := make([]mtasts.Problem, n)
	for i := range problems {
		problems[i] = p
	}
	return problems
}

// anyFatal reports whether one of the problems is of the kinds that take the
// validity away. TestFatal holds which these are.
func anyFatal(problems []mtasts.Problem) bool {
	for _, p := range problems {
		if p.Kind.Fatal() {
			return true
		}
	}
	return false
}

func TestFatal(t *testing.T) {
	t.Parallel()
	for kind, want := range map[mtasts.Kind]bool{
		mtasts.MissingField: true, mtasts.InvalidValue: true, mtasts.MalformedField: true, mtasts.EmptyField: true,
		mtasts.TooManyFields: true, mtasts.LongMaxAge: true, mtasts.TooLarge: true,
		mtasts.DuplicateField: false, mtasts.UnknownField: false, mtasts.FieldCase: false, mtasts.SpacedVersion: false,
		mtasts.TrailingSpace: false, mtasts.EmptyLine: false, mtasts.DuplicateMX: false, mtasts.ShortMaxAge: false,
	} {
		if got := kind.Fatal(); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

func TestParseRecordOnOtherTexts(t *testing.T) {
	t.Parallel()
	for _, txt := range []string{
		"", "v=spf1 -all", "v=STSv1", "v=STSv2; id=a", "v=STSv10; id=a", "v=stsv1; id=a", "V=STSv1; id=a",
		" v=STSv1; id=a", "v = STSv1; id=a", "v=STSv1 id=a", "id=a; v=STSv1",
	} {
		t.Run(txt, func(t *testing.T) {
			t.Parallel()
			if got, ok := mtasts.ParseRecord(txt); ok {
				t.Errorf("got %+v, want no record", got)
			}
		})
	}
}

func TestRecordFields(t *testing.T) {
	t.Parallel()
	record, _ := mtasts.ParseRecord("v=STSv1; x=1; id=a; bad; x=2")
	want := []mtasts.Field{{"x", "1"}, {"id", "a"}, {"x", "2"}}
	if diff := cmp.Diff(want, record.Fields); diff != "" {
		t.Errorf("got other fields (-want +got):\n%s", diff)
	}
}
