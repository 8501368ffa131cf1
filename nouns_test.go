package dmarcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
)

func TestTokenIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []dmarcd.TokenID{1, 35, 36, 78568, 1<<63 - 1} {
		got, err := dmarcd.ParseTokenID(id.String())
		if err != nil || got != id {
			t.Errorf("%d is written %s and read %d, %v", id, id, got, err)
		}
	}
	for _, bad := range []string{"", "tok_", "tok_0", "tok_-1", "dom_1", "1", "tok_A", "tok_01", "tok_zzzzzzzzzzzzzzzzz"} {
		if id, err := dmarcd.ParseTokenID(bad); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("ParseTokenID(%q) = %v, %v; want ErrInvalid", bad, id, err)
		}
	}
}

func TestDays(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		day  dmarcd.Day
	}{
		{"1970-01-01", 0},
		{"1969-12-31", -1},
		{"2026-11-15", 20772},
		{"2024-02-29", 19782},
		{"0001-01-01", -719162},
		{"9999-12-31", 2932896},
	} {
		day, err := dmarcd.ParseDay(test.text)
		if err != nil || day != test.day || day.String() != test.text {
			t.Errorf("ParseDay(%q) = %d (%s), %v; want %d", test.text, day, day, err, test.day)
		}
	}
	for _, bad := range []string{"", "2026", "2026-11", "2026-11-31", "2026-1-5", "15.11.2026", "2026-11-15T00:00:00Z", " 2026-11-15"} {
		if _, err := dmarcd.ParseDay(bad); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("ParseDay(%q): got %v, want ErrInvalid", bad, err)
		}
	}
	if got := dmarcd.DayOf(time.Date(2026, 11, 15, 23, 59, 59, 0, time.FixedZone("", -3600))); got != 20773 {
		t.Errorf("a moment of another zone lies in day %d, want 20773 (UTC)", got)
	}
}

func TestTokenRights(t *testing.T) {
	t.Parallel()
	read, write := dmarcd.Token{Scope: dmarcd.ScopeRead}, dmarcd.Token{Scope: dmarcd.ScopeWrite}
	if !read.May(dmarcd.ScopeRead) || read.May(dmarcd.ScopeWrite) || !write.May(dmarcd.ScopeRead) || !write.May(dmarcd.ScopeWrite) {
		t.Error("read allows reading alone, write both")
	}
	admin, publish := dmarcd.Token{Scope: dmarcd.ScopeAdmin}, dmarcd.Token{Scope: dmarcd.ScopePublish}
	if admin.May(dmarcd.ScopePublish) || !publish.May(dmarcd.ScopePublish) || !publish.May(dmarcd.ScopeRead) || publish.May(dmarcd.ScopeWrite) {
		t.Error("admin does not include publish, which includes read alone")
	}
	if (dmarcd.Token{Scope: "all"}).May("all") || (dmarcd.Token{}).May("") {
		t.Error("an unknown scope allows something")
	}
	for _, name := range []string{"", " ", strings.Repeat("x", 101), "a\nb", "a\x00", "\xff"} {
		if got, err := dmarcd.ParseTeamName(name); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("ParseTeamName(%q) = %q, %v; want ErrInvalid", name, got, err)
		}
	}
}
