package dmarc_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/corpustest"
)

// facts are the names and values of what a table expects or we found.
type facts map[string]any

// corpusTable is one table of cases gathered from another project.
type corpusTable struct {
	Zone  map[string]json.RawMessage `json:"zone"`
	Cases []corpusCase               `json:"cases"`
}

// corpusCase holds the members of all kinds of table; each uses a few.
type corpusCase struct {
	ID            string                     `json:"id"`
	Record        string                     `json:"record"`
	Tag           string                     `json:"tag"`
	Value         string                     `json:"value"`
	Zone          map[string]json.RawMessage `json:"zone"`
	ZoneTXT       corpustest.Texts           `json:"zone_txt"`
	RecordsAt     []string                   `json:"records_at"`
	PSD           map[string]string          `json:"psd"`
	Domain        string                     `json:"domain"`
	Author        string                     `json:"author"`
	Authenticated string                     `json:"authenticated"`
	A             string                     `json:"a"`
	B             string                     `json:"b"`
	Mode          string                     `json:"mode"`
	PolicyDomain  string                     `json:"policy_domain"`
	Destination   string                     `json:"destination"`
	HeaderFrom    string                     `json:"header_from"`
	DKIMPass      []string                   `json:"dkim_pass"`
	SPFPass       []string                   `json:"spf_pass"`
	DKIM          []corpusResult             `json:"dkim"`
	SPF           corpusResult               `json:"spf"`
	Expect        facts                      `json:"expect"`
}

// corpusResult is the outcome of SPF or of one DKIM signature.
type corpusResult struct {
	Result string `json:"result"`
	Domain string `json:"domain"`
}

// corpusTables says how each table is read. They are named by project and file; the
// folders have the project's owner before it. A table that follows RFC 7489 is held
// against the legacy view. Left out are checkdmarc's dmarc-lookup, which is about
// records at the wrong name, and mox's org-domain-psl, which is about a list of its
// own making.
var corpusTables = map[string]func(*testing.T, corpusCase) facts{
	"checkdmarc/dmarc-record-parse.json":             evaluateLint,
	"dmarcgo/dmarc-record-parse.json":                evaluateLint,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json": evaluateLint,
	"mail-dmarc/dmarc-tag-values.json":               evaluateTag,
	"mail-dmarc/dmarc-record-parse.json":             evaluateRecord,
	"mail-dmarc/dmarc-records-seen-in-the-wild.json": evaluateRecord,
	"mox/dmarc-record-parse.json":                    evaluateRecord,
	"mailauth/dmarc-record-parse.json":               evaluateRecord,
	"mail-auth/dmarc-record-parse.json":              evaluateRecord,
	"OpenDMARC/dmarc-record-parse.json":              evaluateRecord,
	"draft-ietf-dmarc-dmarcbis/records.json":         evaluateRecord,
	"dmarcgo/tree-walk-queries.json":                 evaluateWalk,
	"draft-ietf-dmarc-dmarcbis/tree-walk.json":       evaluateWalk,
	"mail-dmarc/tree-walk-org-domain.json":           evaluateWalk,
	"mox/dmarc-lookup.json":                          evaluateLegacyLookup,
	"draft-ietf-dmarc-dmarcbis/alignment.json":       evaluateAlignment,
	"OpenDMARC/alignment.json":                       evaluateLegacyAlignment,
	"checkdmarc/external-report-authorisation.json":  evaluateConsent,
	"mox/external-report-authorisation.json":         evaluateConsent,
	"mail-auth/external-report-authorisation.json":   evaluateConsent,
	"mail-dmarc/dmarc-evaluate.json":                 evaluateMail,
	"mailauth/rfc9989-evaluate.json":                 evaluateMail,
	"mail-auth/dmarc-evaluate.json":                  evaluateMail,
	"kumomta/dmarc-evaluate.json":                    evaluateLegacyMail,
	"mox/dmarc-evaluate.json":                        evaluateLegacyMail,
	"mailauth/dmarc-evaluate.json":                   evaluateLegacyMail,
	"rspamd/dmarc-evaluate.json":                     evaluateLegacyMail,
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	corpustest.Dir(t)
	comparison := corpustest.Compare(t, disagreements)
	for _, name := range slices.Sorted(maps.Keys(corpusTables)) {
		var table corpusTable
		corpustest.Table(t, "*+"+name, &table)
		compared := 0
		for _, c := range table.Cases {
			if c.Zone == nil {
				c.Zone = table.Zone
			}
			got, want := common(corpusTables[name](t, c), c.Expect)
			compared += len(want)
			comparison.Compare(name+" "+c.ID, maps.Equal(got, want), got, want)
		}
		if compared == 0 {
			t.Errorf("%s: nothing compared", name)
		}
	}
}

// TestCorpusSuffixes compares with the list's own test of registrable domains.
func TestCorpusSuffixes(t *testing.T) {
	t.Parallel()
	text := corpustest.File(t, "publicsuffix+list/tests/tests.txt")
	compared := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || strings.HasPrefix(line, "//") || fields[0] == "null" {
			continue
		}
		name, want := fields[0], fields[1]
		if strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) {
			continue // names are A-labels here
		}
		if want == "null" { // a suffix stands for itself
			want = strings.ToLower(name)
		}
		compared++
		if got := dmarc.LegacyOrganization(name); got != want {
			t.Errorf("%s: got %q want %q", name, got, want)
		}
	}
	if compared == 0 {
		t.Error("nothing compared")
	}
}

// common returns the facts that both name, in plain words. Facts that we do not
// state are not compared.
func common(found, expected facts) (got, want map[string]string) {
	got, want = make(map[string]string), make(map[string]string)
	for name, value := range expected {
		if own, ok := found[name]; ok {
			got[name], want[name] = plain(own), plain(value)
		}
	}
	return got, want
}

// plain writes a value so that those that mean the same are equal: null is "", and
// of a URI only the address counts.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = plain(item)
		}
		return strings.Join(items, ":")
	case []string:
		return strings.Join(v, ":")
	case map[string]any:
		return plain(v["uri"])
	default:
		return strings.TrimPrefix(fmt.Sprint(v), "mailto:")
	}
}

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

// Why we differ, where a reason holds for several cases.
const (
	removedTag  = "RFC 9989 appendix C.5.2 removed pct, rf and ri: receivers ignore them whatever their value"
	actsAsNone  = "RFC 9989 §4.10.1: with an invalid sp or np the whole record acts as p=none"
	otherScheme = "RFC 9989 §4.7: a scheme that receivers do not support is ignored, the URI is valid"
	notAName    = "a name with empty labels is not a domain name"
)

// disagreements names the cases of the corpus on which we differ, and why. One that
// no longer differs fails the test.
var disagreements = corpustest.Disagreements{
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-013":                                                   actsAsNone,
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-014":                                                   actsAsNone,
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-020":                                                   "RFC 9989 §4.8: values are ASCII, and RFC 3986 knows no other characters in a URI",
	"mox/dmarc-evaluate.json dmarc-evaluate-014":                                                               "RFC 7489 §6.3: syntax errors after v and p are ignored; so says RFC 9989 §4.8 of all tags",
	"mox/external-report-authorisation.json external-report-authorisation-007":                                 "RFC 9990 §4: the version alone authorizes, what follows need not be a valid record",
	"mail-dmarc/dmarc-evaluate.json dmarc-evaluate-008":                                                        "RFC 9989 §4.10.1: without p and rua there is no DMARC processing, on a public suffix as well",
	"mail-dmarc/dmarc-record-parse.json dmarc-record-parse-006":                                                "RFC 9989 §4.10.1 asks for a syntactically valid URI in rua, not for a scheme that is supported",
	"mail-dmarc/dmarc-record-parse.json dmarc-record-parse-008":                                                "RFC 9989 §4.10.1: without p and rua there is no DMARC processing, on a public suffix as well",
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-087":                                                    otherScheme,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-088":                                                    otherScheme,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-090":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-091":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-092":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-093":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-094":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-095":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-096":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-101":                                                    removedTag,
	"mailauth/rfc9989-evaluate.json rfc9989-evaluate-005":                                                      "RFC 9989 §4.10 step 2: several records are discarded, and the walk goes on",
	"OpenDMARC/alignment.json alignment-005":                                                                   notAName,
	"OpenDMARC/alignment.json alignment-006":                                                                   notAName,
	"OpenDMARC/dmarc-record-parse.json dmarc-record-parse-005":                                                 "RFC 9989 §4.7: the policy is one of three words, and n is none of them",
	"OpenDMARC/dmarc-record-parse.json dmarc-record-parse-010":                                                 "RFC 9989 §4.8: an invalid adkim falls back to its default, the record stays usable",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json FailureOptionTests.FailureOptionWithInvalidValue[ s]":      "RFC 9989 §4.8 allows white space around the equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json PercentTests.PercentWithInvalidValue[18=18]":               removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json PercentTests.PercentWithInvalidValue[]":                    removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportFormatTests.ReportFormatWithInvalidValue[999]":       removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportFormatTests.ReportFormatWithInvalidValue[]":          removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[-18]":   removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[18=18]": removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[]":      removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[abc]":   removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json RufTests.RufWithValidEmptyValue[]":                         "RFC 9989 §4.8: a value has at least one character",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json UnknownTagTests.MalformedUnknownTagGivesError":             "RFC 9989 §4.7: unknown tags are ignored, and a value may hold an equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json VersionTests.VersionWithInvalidValue[ DMARC1]":             "RFC 9989 §4.8 allows white space around the equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json VersionTests.VersionWithValidValue[dmarc1]":                "RFC 9989 §4.7: the version is exactly DMARC1",
}
