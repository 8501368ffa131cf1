package reporttext_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/reporttext"
)

func TestALabels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                       "",
		"example.com":            "example.com",
		"bücher.example":         "xn--bcher-kva.example",
		"BÜCHER.example":         "xn--bcher-kva.example",
		"_dmarc.bücher.example":  "_dmarc.xn--bcher-kva.example",
		"xn--bcher-kva.example":  "xn--bcher-kva.example",
		"bücher。example":         "xn--bcher-kva.example",
		"例え.テスト":                 "xn--r8jz45g.xn--zckzah",
		"-ü.example":             "-ü.example",
		"\xffno.example":         "\xffno.example",
		strings.Repeat("ü", 200): strings.Repeat("ü", 200),
	} {
		if got := reporttext.ALabels(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1":               "192.0.2.1",
		" 192.0.2.1 ":             "192.0.2.1",
		"[192.0.2.1]":             "192.0.2.1",
		"192.0.2.1:25":            "192.0.2.1",
		"[192.0.2.1]:25":          "192.0.2.1",
		"192.0.2.1/32":            "192.0.2.1",
		"192.000.002.001":         "192.0.2.1",
		"010.000.002.100":         "10.0.2.100",
		"192.000.002.001:25":      "192.0.2.1",
		"192.000.002.001/32":      "192.0.2.1",
		"2001:db8::1":             "2001:db8::1",
		"2001:DB8:0:0::1":         "2001:db8::1",
		"[2001:db8::1]":           "2001:db8::1",
		"[IPv6:2001:db8::1]":      "2001:db8::1",
		"[2001:db8::1]:25":        "2001:db8::1",
		"2001:db8::1/128":         "2001:db8::1",
		"fe80::1%eth0":            "fe80::1",
		"::ffff:192.0.2.1":        "192.0.2.1",
		"":                        "",
		"192.0.2.0/24":            "",
		"192.0.2":                 "",
		"192.0.2.256":             "",
		"unknown":                 "",
		"192.0.2.1:99999":         "",
		"192.0.2.1, 192.0.2.2":    "",
		strings.Repeat("0", 1000): "",
	} {
		got := ""
		if addr, ok := reporttext.Address(text); ok {
			got = addr.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	const want = "2026-04-01T10:20:30Z"
	for text, zoned := range map[string]bool{
		"2026-04-01T10:20:30Z":            true,
		"2026-04-01t10:20:30z":            true,
		"2026-04-01T12:20:30+02:00":       true,
		"2026-04-01T12:20:30+0200":        true,
		"2026-04-01T10:20:30.5Z":          true,
		"2026-04-01T10:20:30":             false,
		"2026-04-01 10:20:30":             false,
		"2026-04-01 10:20:30 UTC":         true,
		"20260401T102030Z":                true,
		"20260401T102030":                 false,
		"Wed, 01 Apr 2026 10:20:30 +0000": true,
		"Wed, 1 Apr 2026 10:20:30 GMT":    true,
		"Wed, 1 Apr 2026 05:20:30 EST":    true,
		"wed, 1 apr 2026 10:20:30 GMT":    true,
		"1 Apr 2026 10:20:30 UT":          true,
		"1 Apr 26 03:20:30 PDT":           true,
		"Wed Apr  1 10:20:30 2026":        false,
	} {
		got, gotZoned, ok := reporttext.Time(text)
		if !ok || got.Truncate(time.Second).Format(time.RFC3339) != want || gotZoned != zoned {
			t.Errorf("%q: got %v, %v, %v, want %s, %v", text, got, gotZoned, ok, want, zoned)
		}
	}
	for _, text := range []string{"", "yesterday", "2026-13-01", "1 Apr 2026 10:20:30 XYZ", "20260401", strings.Repeat("1", 1000)} {
		if got, _, ok := reporttext.Time(text); ok {
			t.Errorf("%q: got %v, want no time", text, got)
		}
	}
	if got, zoned, ok := reporttext.Time("2026-04-01"); !ok || !zoned || got.Format(time.RFC3339) != "2026-04-01T00:00:00Z" {
		t.Errorf("a date: got %v, %v, %v, want midnight UTC, zoned", got, zoned, ok)
	}
}

func TestPlausible(t *testing.T) {
	t.Parallel()
	first := time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for _, test := range []struct {
		seconds, latest int64
		want            bool
	}{
		{0, 0, false}, {first - 1, 0, false}, {first, 0, true}, {first + 10, first + 10, true}, {first + 11, first + 10, false},
	} {
		if got := reporttext.Plausible(test.seconds, test.latest); got != test.want {
			t.Errorf("%d up to %d: got %v, want %v", test.seconds, test.latest, got, test.want)
		}
	}
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		head string
		want string // the head in UTF-8, "" if the encoding is neither UTF-16 nor UTF-32
		bom  bool
	}{
		{"", "", false},
		{"<a>", "", false},
		{"\xef\xbb\xbf<a>", "", false},
		{"\xfe\xff\x00<\x00a", "<a", true},
		{"\xff\xfe<\x00a\x00", "<a", true},
		{"\x00<\x00a", "<a", false},
		{"{\x00\"\x00", `{"`, false},
		{"\x00\x00\xfe\xff\x00\x00\x00<", "<", true},
		{"\xff\xfe\x00\x00<\x00\x00\x00", "<", true},
		{"\x00\x00\x00<\x00\x00\x00a", "<a", false},
		{"[\x00\x00\x00{\x00\x00\x00", "[{", false},
		{"\x00\x00\x00\x00", "", false},
		{"a\x00b\x00", "", false},
	} {
		encoding, bom := reporttext.Encoding([]byte(test.head))
		if (encoding != nil) != (test.want != "") || bom != test.bom {
			t.Errorf("%q: got %v and byte order mark %v, want %q and %v", test.head, encoding, bom, test.want, test.bom)
			continue
		}
		if encoding == nil {
			continue
		}
		if got, err := encoding.NewDecoder().String(test.head); err != nil || got != test.want {
			t.Errorf("%q: got %q and error %v, want %q", test.head, got, err, test.want)
		}
	}
}
