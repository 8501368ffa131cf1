package dmarcd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestParseTags(t *testing.T) {
	t.Parallel()
	many := make([]string, dmarcd.MaxTags+1)
	for i := range many {
		many[i] = "t" + strings.Repeat("a", i)
	}
	for _, row := range []struct {
		name string
		list []string
		want []string // nil is an error
	}{
		{"none", nil, []string{}},
		{"in order, in lower case and each once", []string{" Shop", "eu", "shop"}, []string{"eu", "shop"}},
		{"letters of any script, digits and punctuation", []string{"größe_2.0-x"}, []string{"größe_2.0-x"}},
		{"an empty one", []string{""}, nil},
		{"a space inside", []string{"a b"}, nil},
		{"what is no text", []string{"\xff"}, nil},
		{"a control character", []string{"a\x00"}, nil},
		{"as long as can be", []string{strings.Repeat("ö", 40)}, []string{strings.Repeat("ö", 40)}},
		{"too long", []string{strings.Repeat("ö", 41)}, nil},
		{"as many as can be", many[:dmarcd.MaxTags], many[:dmarcd.MaxTags]},
		{"too many", many, nil},
	} {
		got, err := dmarcd.ParseTags(row.list)
		if (err != nil) != (row.want == nil) || !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", row.name, got, err, row.want)
		}
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parent, name string
		want         bool
	}{
		{"example.com", "example.com", true},
		{"example.com", "a.b.example.com", true},
		{"example.com", "badexample.com", false},
		{"a.example.com", "example.com", false},
		{"", "example.com", false},
	} {
		if got := dmarcd.Covers(test.parent, test.name); got != test.want {
			t.Errorf("Covers(%q, %q) = %t", test.parent, test.name, got)
		}
	}
}
