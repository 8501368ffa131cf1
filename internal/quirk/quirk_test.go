package quirk_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/internal/quirk"
)

type kind uint8

var (
	table quirk.Table[kind]

	first  = table.Define("first", "One.")
	second = table.Define("second", "Two.")
)

func TestTable(t *testing.T) {
	t.Parallel()
	if got, want := table.All(), []kind{first, second}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, tt := range []struct {
		quirk         kind
		name, meaning string
	}{
		{0, "", ""},
		{first, "first", "One."},
		{second, "second", "Two."},
		{second + 1, "", ""},
	} {
		if got := table.Name(tt.quirk); got != tt.name {
			t.Errorf("%d: got the name %q, want %q", tt.quirk, got, tt.name)
		}
		if got := table.Meaning(tt.quirk); got != tt.meaning {
			t.Errorf("%d: got the meaning %q, want %q", tt.quirk, got, tt.meaning)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	var tally quirk.Tally[kind]
	if got := tally.Counts(); got != nil {
		t.Errorf("got %v, want none", got)
	}
	tally.Note(second)
	before := tally
	tally.NoteIf(true, second)
	tally.NoteIf(false, first)
	tally.Note(quirk.Max)
	if tally.Has(first) || !tally.Has(second) {
		t.Errorf("got %t and %t, want the second alone", tally.Has(first), tally.Has(second))
	}
	want := []quirk.Count[kind]{{Quirk: second, Count: 2}, {Quirk: quirk.Max, Count: 1}}
	if got := tally.Counts(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := before.Counts(), []quirk.Count[kind]{{Quirk: second, Count: 1}}; !slices.Equal(got, want) {
		t.Errorf("copy: got %v, want %v", got, want)
	}
}
