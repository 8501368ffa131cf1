package dmarc_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/corpustest"
)

// otherList is why a table about suffixes differs: it comes with a list of its
// own, while the RFC 7489 view takes the Public Suffix List as it is.
const otherList = "the table has its own list of suffixes"

// TestCorpusSuffixTables compares with the tables of other projects about public
// suffixes.
func TestCorpusSuffixTables(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Domain string
			Expect     struct {
				OrgDomain      *string `json:"org_domain"`
				IsPublicSuffix *bool   `json:"is_public_suffix"`
			}
		}
	}
	for name, known := range map[string]corpustest.Disagreements{
		"mail-dmarc/public-suffix.json": {},
		"mox/org-domain-psl.json": {
			"org-domain-psl-004": otherList, "org-domain-psl-007": otherList,
			"org-domain-psl-014": otherList, "org-domain-psl-017": otherList,
		},
	} {
		table.Cases = nil
		corpustest.Table(t, "*+"+name, &table)
		comparison := corpustest.Compare(t, known)
		for _, c := range table.Cases {
			if want := c.Expect.IsPublicSuffix; want != nil {
				got := dmarc.IsPublicSuffix(c.Domain)
				comparison.Compare(c.ID, got == *want, got, *want)
			}
			if want := c.Expect.OrgDomain; want != nil {
				got := dmarc.LegacyOrganization(c.Domain)
				comparison.Compare(c.ID, got == *want, got, *want)
			}
		}
	}
}
