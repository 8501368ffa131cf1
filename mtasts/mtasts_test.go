package mtasts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/dns/dnstest"
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

func TestLookupRecord(t *testing.T) {
	t.Parallel()
	type problems = []mtasts.Problem
	for _, tt := range []struct {
		name     string
		zone     string
		want     mtasts.Status
		records  int
		others   int
		problems problems
	}{
		{name: "one record", zone: `_mta-sts.example.com TXT "v=STSv1; id=1"`, want: mtasts.StatusOK, records: 1},
		{name: "in two strings", zone: `_mta-sts.example.com TXT "v=STSv1; i" "d=1"`, want: mtasts.StatusOK, records: 1},
		{
			name: "beside something else", zone: "_mta-sts.example.com TXT \"v=STSv1; id=1\"\n_mta-sts.example.com TXT \"other\"",
			want: mtasts.StatusOK, records: 1, others: 1,
		},
		{
			name: "kept elsewhere", zone: "_mta-sts.example.com CNAME sts.example.net\nsts.example.net TXT \"v=STSv1; id=1\"",
			want: mtasts.StatusOK, records: 1,
		},
		{
			name: "kept nowhere", zone: "_mta-sts.example.com CNAME gone.example.net",
			want: mtasts.StatusNone, problems: problems{{Kind: mtasts.DanglingAlias, Text: "gone.example.net"}},
		},
		{name: "invalid", zone: `_mta-sts.example.com TXT "v=STSv1; id=a-b"`, want: mtasts.StatusInvalid, records: 1},
		{
			name: "two records", zone: "_mta-sts.example.com TXT \"v=STSv1; id=1\"\n_mta-sts.example.com TXT \"v=STSv1; id=2\"",
			want: mtasts.StatusMultiple, records: 2, problems: problems{{Kind: mtasts.MultipleRecords, Count: 2, Limit: 1}},
		},
		{name: "no such name", want: mtasts.StatusNone},
		{name: "not inherited", zone: `_mta-sts.com TXT "v=STSv1; id=1"`, want: mtasts.StatusNone},
		{name: "no TXT record", zone: "_mta-sts.example.com A 192.0.2.1", want: mtasts.StatusNone},
		{name: "something else", zone: `_mta-sts.example.com TXT "v=spf1 -all"`, want: mtasts.StatusNone, others: 1},
		{
			name: "nearly a record", zone: `_mta-sts.example.com TXT "v=STSv1 id=1"`,
			want: mtasts.StatusNone, others: 1, problems: problems{{Kind: mtasts.NearMiss, Text: "v=STSv1 id=1"}},
		},
		{name: "inconclusive", zone: "_mta-sts.example.com INCONCLUSIVE", want: mtasts.StatusInconclusive},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := mtasts.LookupRecord(t.Context(), dnstest.New(tt.zone), "Example.COM.")
			if got.Status != tt.want || len(got.Records) != tt.records || len(got.Others) != tt.others {
				t.Errorf("got %v, %d records, %d others; want %v, %d, %d", got.Status, len(got.Records), len(got.Others), tt.want, tt.records, tt.others)
			}
			if diff := cmp.Diff(tt.problems, got.Problems); diff != "" {
				t.Errorf("got other problems (-want +got):\n%s", diff)
			}
			if _, ok := got.Record(); ok != (tt.records == 1) {
				t.Errorf("one record: got %v, want %v", ok, tt.records == 1)
			}
		})
	}
}

func TestLookupRecordAsksOnlyForNames(t *testing.T) {
	t.Parallel()
	for _, domain := range []string{"", "a..b", "a b", "é.example"} {
		zone := dnstest.New("")
		got := mtasts.LookupRecord(t.Context(), zone, domain)
		if got.Status != mtasts.StatusNone || len(zone.Asked()) != 0 {
			t.Errorf("%q: got %v after %d questions, want %v after none", domain, got.Status, len(zone.Asked()), mtasts.StatusNone)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[interface{ String() string }]string{
		mtasts.StatusInconclusive: "inconclusive", mtasts.StatusOK: "ok", mtasts.StatusNone: "none",
		mtasts.StatusMultiple: "multiple", mtasts.StatusInvalid: "invalid",
		mtasts.FetchInconclusive: "inconclusive", mtasts.FetchOK: "ok", mtasts.FetchInvalid: "invalid",
		mtasts.FetchBadCertificate: "bad certificate", mtasts.FetchRedirect: "redirect", mtasts.FetchBadStatus: "bad status",
		mtasts.FetchNoHost:  "no host",
		mtasts.ModeUnstated: "", mtasts.ModeEnforce: "enforce", mtasts.ModeTesting: "testing", mtasts.ModeNone: "none",
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
