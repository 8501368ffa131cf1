package wire_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestPathsOfChanges compares a check that has every fact with an empty one: each path must lead
// to its value in the check. It omits the SPF tree and findings, whose paths differ.
func TestPathsOfChanges(t *testing.T) {
	t.Parallel()
	status := "ok"
	full := facts.Check{Grade: "B", Facts: &facts.Facts{
		Domain: "example.com",
		DMARC: facts.DMARC{
			Status: status, Reason: "r", Record: "v=DMARC1; p=none", RecordDomain: "example.com", OrganizationalDomain: "example.com",
			Policy: "none", Applied: "none",
			Destinations: []facts.Destination{{Tag: "rua", URI: "mailto:a@example.com", Consent: "not needed"}},
			Legacy:       facts.Legacy{RecordDomain: "example.com", OrganizationalDomain: "example.com", Policy: "none"},
		},
		SPF: facts.SPF{Status: status, Reason: "r", Record: "v=spf1 mx -all", Lookups: 1, VoidLookups: 1},
		DKIM: facts.DKIM{Keys: []facts.DKIMKey{{
			Selector: "s1", From: "report", Status: "found", Reason: "r", Record: "p=", Algorithm: "rsa", Bits: 1024, Testing: true,
			Aliases: []string{"s1.example.net"},
		}}},
		MX: facts.MX{Status: status, Hosts: []facts.MXHost{{Name: "mx.example.com", Preference: 10, Status: status, Addresses: []string{"192.0.2.1"}}}},
		MTASTS: facts.MTASTS{
			Status: status, Reason: "r", Record: "v=STSv1; id=1", Fetch: "ok", Mode: "enforce", MaxAge: 3600, MX: []string{"mx.example.com"},
		},
		TLSRPT: facts.TLSRPT{Status: status, Reason: "r", Record: "v=TLSRPTv1", Destinations: []string{"mailto:t@example.com"}},
		BIMI:   facts.BIMI{Status: status, Reason: "r", Record: "v=BIMI1", RecordDomain: "example.com", Location: "l", Evidence: "a"},
		DANE:   facts.DANE{Status: status, Reason: "r", Hosts: []facts.DANEHost{{Name: "mx.example.com", Status: status, Records: []string{"3 1 1 ab"}}}},
		DNSSEC: facts.DNSSEC{Status: status, Reason: "r", Zone: "example.com"},
	}}
	changes := facts.Changes(facts.Check{Facts: &facts.Facts{}}, full)
	entry := wire.NewStoredCheck(facts.StoredCheck{Check: full, Changes: changes})
	var document any
	musttest.Do(t, json.Unmarshal([]byte(marshal(t, entry.Check)), &document))
	values := map[string]string{}
	flatten(values, "", document)
	for _, change := range entry.Changes {
		if got, ok := values[change.Path]; !ok || got != string(change.After) {
			t.Errorf("%s: got %q in the document, want %q", change.Path, got, change.After)
		}
	}
	if got, want := len(entry.Changes), 57; got != want {
		t.Errorf("got %d changes, want %d: one for each other fact", got, want)
	}
}

// flatten adds every value of a document by its path.
func flatten(values map[string]string, path string, value any) {
	below := func(member string) string {
		if path == "" {
			return member
		}
		return path + "." + member
	}
	switch value := value.(type) {
	case map[string]any:
		for member, v := range value {
			flatten(values, below(member), v)
		}
	case []any:
		for i, v := range value {
			flatten(values, below(elementName(i, v)), v)
		}
	default:
		values[path] = fmt.Sprint(value)
	}
}

// elementName names an element of a list by what it is about.
func elementName(i int, element any) string {
	switch element := element.(type) {
	case string:
		return element
	case map[string]any:
		for _, key := range []string{"selector", "host", "uri"} {
			if name, ok := element[key].(string); ok {
				return name
			}
		}
	}
	return strconv.Itoa(i)
}

func TestStoredCheck(t *testing.T) {
	t.Parallel()
	stored := facts.StoredCheck{
		ID: 36, FirstAt: time.Unix(1e9, 0), LastAt: time.Unix(2e9, 0),
		Check: facts.Check{At: time.Unix(2e9, 0), Grade: "B", Facts: &facts.Facts{Domain: "example.com"}},
		Changes: []facts.Change{
			{Fact: "part.later", Before: "b"},
			{Fact: facts.NameSPFIncluded, Of: "include:{member}", Before: "v=spf1", After: "v=spf1 -all"},
			{Fact: facts.NameFinding, Of: "spf.ptr", After: "warning"},
		},
	}
	got := wire.NewStoredCheck(stored)
	want := wire.StoredCheck{
		ID: new("chk_10"), FirstAt: "2001-09-09T01:46:40+00:00", Check: wire.NewCheck(stored.Check),
		Changes: []wire.Change{
			{Path: "findings.spf.ptr", After: "warning"},
			{Path: "part.later", Before: "b"},
			{Path: "spf.tree.include:{member}.record", Before: "v=spf1", After: "v=spf1 -all"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := "2033-05-18T03:33:20+00:00"; got.CheckedAt != last {
		t.Errorf("got the time %s, want that of the last check, %s", got.CheckedAt, last)
	}
}
