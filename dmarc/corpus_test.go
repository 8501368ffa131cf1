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
	"checkdmarc/dmarc-record-parse.json":             judgeLint,
	"dmarcgo/dmarc-record-parse.json":                judgeLint,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json": judgeLint,
	"mail-dmarc/dmarc-tag-values.json":               judgeTag,
	"mail-dmarc/dmarc-record-parse.json":             judgeRecord,
	"mail-dmarc/dmarc-records-seen-in-the-wild.json": judgeRecord,
	"mox/dmarc-record-parse.json":                    judgeRecord,
	"mailauth/dmarc-record-parse.json":               judgeRecord,
	"mail-auth/dmarc-record-parse.json":              judgeRecord,
	"OpenDMARC/dmarc-record-parse.json":              judgeRecord,
	"draft-ietf-dmarc-dmarcbis/records.json":         judgeRecord,
	"dmarcgo/tree-walk-queries.json":                 judgeWalk,
	"draft-ietf-dmarc-dmarcbis/tree-walk.json":       judgeWalk,
	"mail-dmarc/tree-walk-org-domain.json":           judgeWalk,
	"mox/dmarc-lookup.json":                          judgeLegacyLookup,
	"draft-ietf-dmarc-dmarcbis/alignment.json":       judgeAlignment,
	"OpenDMARC/alignment.json":                       judgeLegacyAlignment,
	"checkdmarc/external-report-authorisation.json":  judgeConsent,
	"mox/external-report-authorisation.json":         judgeConsent,
	"mail-auth/external-report-authorisation.json":   judgeConsent,
	"mail-dmarc/dmarc-evaluate.json":                 judgeMail,
	"mailauth/rfc9989-evaluate.json":                 judgeMail,
	"mail-auth/dmarc-evaluate.json":                  judgeMail,
	"kumomta/dmarc-evaluate.json":                    judgeLegacyMail,
	"mox/dmarc-evaluate.json":                        judgeLegacyMail,
	"mailauth/dmarc-evaluate.json":                   judgeLegacyMail,
	"rspamd/dmarc-evaluate.json":                     judgeLegacyMail,
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
