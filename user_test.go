package dmarcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
)

func TestParseEmail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, want string }{
		{"ann@example.com", "ann@example.com"},
		{" Ann.B+dmarc@EXAMPLE.com ", "ann.b+dmarc@example.com"},
		{"o'neil@xn--bcher-kva.example", "o'neil@xn--bcher-kva.example"},
		{"ann@bücher.example", "ann@xn--bcher-kva.example"},
		{"ann@example.com.", "ann@example.com"},
	} {
		if got, err := dmarcd.ParseEmail(test.given); err != nil || got != test.want {
			t.Errorf("ParseEmail(%q) = %q, %v; want %q", test.given, got, err, test.want)
		}
	}
	for _, bad := range []string{
		"", "ann", "@example.com", "ann@", "ann@localhost", "a@b@example.com", `"ann b"@example.com`, "ann b@example.com",
		"ann@ example.com", ".ann@example.com", "ann.@example.com", "an..n@example.com", "ann@example.com\r\nBcc: x@example.com",
		"änn@example.com", strings.Repeat("a", 65) + "@example.com", "ann@" + strings.Repeat("a.", 125) + "com", "Ann <ann@example.com>",
	} {
		if got, err := dmarcd.ParseEmail(bad); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("ParseEmail(%q) = %q, %v; want ErrInvalid", bad, got, err)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		role                dmarcd.Role
		see, change, manage bool
	}{
		{dmarcd.RoleOwner, true, true, true},
		{dmarcd.RoleEditor, true, true, false},
		{dmarcd.RoleViewer, true, false, false},
		{"", false, false, false},
		{"admin", false, false, false},
	} {
		for right, want := range map[dmarcd.Right]bool{
			dmarcd.RightSee: test.see, dmarcd.RightChange: test.change, dmarcd.RightManage: test.manage, 0: false, 99: false,
		} {
			if got := test.role.Can(right); got != want {
				t.Errorf("%q.Can(%d) = %t, want %t", test.role, right, got, want)
			}
		}
		if parsed, err := dmarcd.ParseRole(string(test.role)); (err == nil) != test.see || parsed != test.role && test.see {
			t.Errorf("ParseRole(%q) = %q, %v", test.role, parsed, err)
		}
	}
	if got := dmarcd.RoleViewer.Greater(dmarcd.RoleEditor); got != dmarcd.RoleEditor {
		t.Errorf("the greater of viewer and editor is %q", got)
	}
	if got := dmarcd.RoleOwner.Greater(""); got != dmarcd.RoleOwner {
		t.Errorf("the greater of owner and nothing is %q", got)
	}
}

func TestSessionValid(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	for _, test := range []struct {
		name         string
		seen, expiry time.Duration // from now
		want         bool
	}{
		{"in use", -time.Minute, time.Hour, true},
		{"idle", -dmarcd.SessionIdle, time.Hour, false},
		{"just not idle", -dmarcd.SessionIdle + time.Second, time.Hour, true},
		{"expired", 0, 0, false},
	} {
		session := dmarcd.Session{SeenAt: now.Add(test.seen), ExpiresAt: now.Add(test.expiry)}
		if got := session.Valid(now); got != test.want {
			t.Errorf("%s: got %t, want %t", test.name, got, test.want)
		}
	}
}

func TestUserNamesAndIDs(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "", " Ann B. ": "Ann B.", "Ünsal Öz": "Ünsal Öz"} {
		if got, err := dmarcd.ParseUserName(given); err != nil || got != want {
			t.Errorf("ParseUserName(%q) = %q, %v; want %q", given, got, err, want)
		}
	}
	for _, bad := range []string{"a\x00b", "a\nb", strings.Repeat("a", 101), "\xff"} {
		if got, err := dmarcd.ParseUserName(bad); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("ParseUserName(%q) = %q, %v; want ErrInvalid", bad, got, err)
		}
	}
	if got, err := dmarcd.ParseUserID(dmarcd.UserID(78568).String()); err != nil || got != 78568 {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := dmarcd.ParseUserID("team_1"); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("got %v, %v; want ErrInvalid", got, err)
	}
}
