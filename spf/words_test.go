package spf_test

import (
	"fmt"
	"testing"

	"github.com/dmarcd/dmarcd/spf"
)

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
