package wire_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// members returns the names of the members of a JSON object in their order.
func members(t *testing.T, object string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(object))
	var names []string
	depth := 0
	key := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return names
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			key = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			key = depth == 1
			continue
		}
		if depth != 1 {
			continue
		}
		if key {
			names = append(names, token.(string))
		}
		key = !key
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text := musttest.Get(json.Marshal(v))(t)
	return string(text)
}

func TestCheckHasTheMembersOfTheContract(t *testing.T) {
	t.Parallel()
	finding := dmarcd.Finding{ID: "spf.ptr", Level: dmarcd.LevelWarning, What: "a", Why: "b", Fix: "Publish:", Record: dmarcd.DNSRecord{Name: "example.com", Type: "TXT", Data: "x"}, RFC: "RFC 7208"}
	check := wire.NewCheck(facts.Check{
		At: time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC), Facts: &facts.Facts{Domain: "example.com"},
		Findings: []dmarcd.Finding{finding},
	})
	for _, tt := range []struct {
		name string
		got  any
		want []string
	}{
		{"check", check, []string{
			"domain", "checked_at", "grade", "dmarc", "spf", "dkim", "mx", "mta_sts", "tls_rpt", "bimi", "dane", "dnssec", "findings", "next_step",
		}},
		{"dmarc", check.DMARC, []string{"status", "record", "record_domain", "organizational_domain", "policy", "effective_policy", "queries", "legacy"}},
		{"legacy", check.DMARC.Legacy, []string{"record_domain", "organizational_domain", "policy"}},
		{"spf", check.SPF, []string{"status", "record", "lookups", "void_lookups", "tree"}},
		{"finding", check.Findings[0], []string{"id", "level", "what", "why", "fix", "rfc"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := members(t, marshal(t, tt.got))
			for _, name := range tt.want {
				if !slices.Contains(got, name) {
					t.Errorf("got the members %v, want %s", got, name)
				}
			}
		})
	}
	if got, want := string(check.Findings[0].Fix), `Publish: example.com. TXT "x"`; got != want {
		t.Errorf("got the fix %q, want %q", got, want)
	}
	if got, want := check.CheckedAt, "2026-11-15T09:30:00+00:00"; got != want {
		t.Errorf("got the time %q, want %q", got, want)
	}
}

func TestCheckListsAreNeverNull(t *testing.T) {
	t.Parallel()
	text := marshal(t, wire.NewCheck(facts.Check{Facts: &facts.Facts{
		SPF:  facts.SPF{Tree: []facts.SPFTerm{{Term: "mx"}}},
		DKIM: facts.DKIM{Keys: []facts.DKIMKey{{Selector: "s1"}}},
		MX:   facts.MX{Hosts: []facts.MXHost{{Name: "mx"}}},
		DANE: facts.DANE{Hosts: []facts.DANEHost{{Name: "mx"}}},
	}}))
	list := regexp.MustCompile(`"(queries|destinations|tree|terms|dkim|aliases|mx|addresses|hosts|records|findings)":null`)
	if list.MatchString(text) || !strings.Contains(text, `"record":null,"lookups":0`) {
		t.Errorf("got %s, want null for what is absent, and no list that is null", text)
	}
}

// TestPolicyThatDoesNotApply checks that the domain of an unusable record is not shown.
func TestPolicyThatDoesNotApply(t *testing.T) {
	t.Parallel()
	got := wire.NewCheck(facts.Check{Facts: &facts.Facts{DMARC: facts.DMARC{
		Status: "unusable", Record: "v=DMARC1; p=x", RecordDomain: "example.com", OrganizationalDomain: "example.com",
		Legacy: facts.Legacy{RecordDomain: "example.com", OrganizationalDomain: "example.com"},
	}}}).DMARC
	want := wire.DMARC{
		Status: "unusable", Record: "v=DMARC1; p=x", OrganizationalDomain: "example.com", Queries: []string{},
		Legacy: wire.Legacy{OrganizationalDomain: "example.com"}, Destinations: []wire.Destination{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the policy that does not apply (-want +got):\n%s", diff)
	}
}
