package tlsrpt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// corpusTable reads a table of the corpus, a collection of other projects' tests
// that is not part of this repository. Without the corpus there is nothing to run:
// the rules themselves are tested elsewhere.
func corpusTable(t *testing.T, name string, table any) bool {
	t.Helper()
	root := os.Getenv("DMARCD_CORPUS")
	if root == "" {
		t.Log("DMARCD_CORPUS is not set, nothing to run")
		return false
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root)
	}
	data, err := os.ReadFile(filepath.Join(root, "dns", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, table); err != nil {
		t.Fatal(err)
	}
	return true
}

func TestCorpusRecords(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"mjl-+mox/tlsrpt-record-parse.json",
		"stalwartlabs+mail-auth/mta-sts-and-tlsrpt-record-parse.json",
		"domainaware+checkdmarc/tlsrpt-record-parse.json",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var table struct {
				Cases []struct {
					ID, Record string
					Expect     struct {
						Valid bool
						RUA   []string
					}
				}
			}
			if !corpusTable(t, file, &table) {
				return
			}
			for _, c := range table.Cases {
				if strings.HasPrefix(c.Record, "v=STS") {
					continue // the other half of a mixed table
				}
				record, _ := tlsrpt.ParseRecord(c.Record)
				var destinations []string
				for _, u := range record.RUA {
					destinations = append(destinations, u.Text)
				}
				if record.Valid != c.Expect.Valid || c.Expect.RUA != nil && !slices.Equal(destinations, c.Expect.RUA) {
					t.Errorf("%s: got valid %v with %q, want %+v", c.ID, record.Valid, destinations, c.Expect)
				}
			}
		})
	}
}

func TestCorpusLookups(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Domain, Expect string
			TXT                map[string]json.RawMessage `json:"zone_txt"`
		}
	}
	if !corpusTable(t, "mjl-+mox/tlsrpt-lookup.json", &table) {
		return
	}
	words := map[string]tlsrpt.Status{
		"ok": tlsrpt.StatusOK, "no record": tlsrpt.StatusNone, "multiple records": tlsrpt.StatusMultiple,
		"malformed": tlsrpt.StatusInvalid, "dns error": tlsrpt.StatusInconclusive,
	}
	for _, c := range table.Cases {
		zone := dnstest.New("")
		for name, raw := range c.TXT {
			var texts []string
			if json.Unmarshal(raw, &texts) != nil { // the word SERVFAIL
				zone.Fail(name)
			}
			for _, text := range texts {
				zone.Add(dns.Record{Name: name, Type: dns.TXT, Text: []string{text}})
			}
		}
		want, known := words[c.Expect]
		if got := tlsrpt.LookupRecord(t.Context(), zone, c.Domain); !known || got.Status != want {
			t.Errorf("%s: got %v, want %q", c.ID, got.Status, c.Expect)
		}
	}
}
