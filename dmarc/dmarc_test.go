package dmarc_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, record string
		changes      []dmarc.Tag
		want         string
	}{
		{"nothing", "v=DMARC1; p=none", nil, "v=DMARC1; p=none"},
		{
			"what is not changed stays, unknown tags too", "v=DMARC1;p=none;rua=mailto:a@example.com,mailto:b@example.com; ruf=mailto:f@example.com; foo=bar",
			[]dmarc.Tag{{Name: "p", Value: "reject"}},
			"v=DMARC1; p=reject; rua=mailto:a@example.com,mailto:b@example.com; ruf=mailto:f@example.com; foo=bar",
		},
		{"a tag is removed", "v=DMARC1; p=reject; t=y; pct=50", []dmarc.Tag{{Name: "t"}, {Name: "pct"}}, "v=DMARC1; p=reject"},
		{"a tag that is not there is not removed", "v=DMARC1; p=reject", []dmarc.Tag{{Name: "t", Value: ""}}, "v=DMARC1; p=reject"},
		{"a tag is added", "v=DMARC1; p=none", []dmarc.Tag{{Name: "rua", Value: "mailto:a@example.com"}}, "v=DMARC1; p=none; rua=mailto:a@example.com"},
		{"p comes first", "v=DMARC1; rua=mailto:a@example.com", []dmarc.Tag{{Name: "p", Value: "none"}}, "v=DMARC1; p=none; rua=mailto:a@example.com"},
		{"the names of tags in any case", "v=DMARC1; P=none", []dmarc.Tag{{Name: "p", Value: "reject"}}, "v=DMARC1; p=reject"},
		{"a tag that appears twice", "v=DMARC1; p=none; p=reject", []dmarc.Tag{{Name: "p", Value: "quarantine"}}, "v=DMARC1; p=quarantine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			record, ok := dmarc.Parse(test.record)
			if !ok {
				t.Fatalf("got no record from %q", test.record)
			}
			if got := record.Edit(test.changes...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTightened(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]string{
		"v=DMARC1; p=none; rua=mailto:a@example.com; foo=bar": "v=DMARC1; p=quarantine; rua=mailto:a@example.com; foo=bar",
		"v=DMARC1; p=quarantine; t=y":                         "v=DMARC1; p=quarantine",
		"v=DMARC1; p=quarantine; sp=none":                     "v=DMARC1; p=reject",
		"v=DMARC1; p=reject; pct=20; np=none":                 "v=DMARC1; p=reject",
		"v=DMARC1; p=reject; t=y":                             "v=DMARC1; p=reject",
		"v=DMARC1; p=none; pct=50":                            "v=DMARC1; p=quarantine",
		"v=DMARC1; p=quarantine; pct=0":                       "v=DMARC1; p=quarantine",
		"v=DMARC1; p=quarantine; pct=99":                      "v=DMARC1; p=quarantine",
		"v=DMARC1; p=quarantine; pct=100":                     "v=DMARC1; p=reject",
		"v=DMARC1; p=quarantine; pct=-1":                      "v=DMARC1; p=reject",
		"v=DMARC1; p=quarantine; pct=half":                    "v=DMARC1; p=reject",
		"v=DMARC1; p=quarantine; foo=50":                      "v=DMARC1; p=reject; foo=50",
		"v=DMARC1; p=none; sp=reject; np=quarantine":          "v=DMARC1; p=quarantine; sp=reject",
	} {
		parsed, _ := dmarc.Parse(record)
		if got := parsed.Tightened(); got != want {
			t.Errorf("%q: got %q, want %q", record, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[fmt.Stringer]string{
		dmarc.StatusOK: "ok", dmarc.StatusNone: "none", dmarc.StatusMultiple: "multiple", dmarc.StatusUnusable: "unusable", dmarc.StatusInconclusive: "inconclusive",
		dmarc.OK: "ok", dmarc.ActsAsNone: "acts as p=none", dmarc.NoProcessing: "no DMARC processing", dmarc.Void: "void",
		dmarc.Aligned: "aligned", dmarc.NotAligned: "not aligned", dmarc.AlignmentUnknown: "unknown",
		dmarc.NotNeeded: "not needed", dmarc.Authorized: "authorized", dmarc.NotAuthorized: "not authorized", dmarc.ConsentUnknown: "unknown",
		dmarc.Unstated: "", dmarc.FailureOptions(0): "0",
	} {
		if got.String() != want {
			t.Errorf("%T: got %q want %q", got, got, want)
		}
	}
}
