package web_test

import (
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/web"
)

func TestPolicyBadge(t *testing.T) {
	t.Parallel()
	known := time.Unix(1e9, 0)
	for _, test := range []struct {
		name       string
		domain     dmarcd.Domain
		applied    string
		text, note string
	}{
		{"not checked", dmarcd.Domain{}, "", "unknown", ""},
		{"no record", dmarcd.Domain{KnownAt: known}, "", "no policy", ""},
		{"as the record says", dmarcd.Domain{KnownAt: known, Policy: "reject"}, "reject", "reject", ""},
		{"in testing", dmarcd.Domain{KnownAt: known, Policy: "quarantine", Record: "v=DMARC1; p=quarantine; t=y"}, "none", "quarantine (testing)", ""},
	} {
		got := web.DomainHead{Domain: test.domain, Applied: test.applied}.PolicyBadge()
		if got.Text != test.text || got.Note != test.note {
			t.Errorf("%s: got %q with %q, want %q with %q", test.name, got.Text, got.Note, test.text, test.note)
		}
	}
}
