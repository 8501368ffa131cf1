package dmarc_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dmarcd/dmarcd/dmarc"
)

// corpusDir returns the folder of the tables, or "" where there is none. A
// relative path is taken from the root of the repository.
func corpusDir() string {
	dir := os.Getenv("DMARCD_CORPUS")
	if dir == "" {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	return filepath.Join(dir, "dns")
}

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
	ZoneTXT       map[string]json.RawMessage `json:"zone_txt"`
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
	dir := corpusDir()
	if dir == "" {
		t.Log("DMARCD_CORPUS is not set: nothing to compare with")
		return
	}
	seen := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(corpusTables)) {
		table := readTable(t, filepath.Join(dir, "*+"+name))
		compared := 0
		for _, c := range table.Cases {
			if c.Zone == nil {
				c.Zone = table.Zone
			}
			differences, n := compare(c.Expect, corpusTables[name](t, c))
			compared += n
			id := name + " " + c.ID
			seen[id] = true
			reason, listed := disagreements[id]
			switch {
			case len(differences) > 0 && !listed:
				t.Errorf("%s: %s", id, strings.Join(differences, ", "))
			case len(differences) == 0 && listed:
				t.Errorf("%s agrees, but is listed as a disagreement: %s", id, reason)
			}
		}
		if compared == 0 {
			t.Errorf("%s: nothing compared", name)
		}
	}
	for id := range disagreements {
		if !seen[id] {
			t.Errorf("%s is listed as a disagreement, but there is no such case", id)
		}
	}
}

// TestCorpusSuffixes compares with the list's own test of registrable domains.
func TestCorpusSuffixes(t *testing.T) {
	t.Parallel()
	dir := corpusDir()
	if dir == "" {
		t.Log("DMARCD_CORPUS is not set: nothing to compare with")
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "publicsuffix+list", "tests", "tests.txt"))
	if err != nil {
		t.Fatal(err)
	}
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

// readTable reads the one file that the pattern matches.
func readTable(t *testing.T, pattern string) corpusTable {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: got %d files want 1 (%v)", pattern, len(paths), err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var table corpusTable
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatalf("read %s: %v", paths[0], err)
	}
	return table
}

// compare returns how what we found differs from what is expected, and how many
// facts both name. Facts that we do not state are not compared.
func compare(want, got facts) (differences []string, compared int) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		found, ok := got[name]
		if !ok {
			continue
		}
		compared++
		if g, w := plain(found), plain(want[name]); g != w {
			differences = append(differences, fmt.Sprintf("%s: got %s want %s", name, g, w))
		}
	}
	return differences, compared
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
