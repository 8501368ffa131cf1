package tlsrpt_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

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
			corpustest.Table(t, file, &table)
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
			TXT                corpustest.Texts `json:"zone_txt"`
		}
	}
	corpustest.Table(t, "mjl-+mox/tlsrpt-lookup.json", &table)
	words := map[string]tlsrpt.Status{
		"ok": tlsrpt.StatusOK, "no record": tlsrpt.StatusNone, "multiple records": tlsrpt.StatusMultiple,
		"malformed": tlsrpt.StatusInvalid, "dns error": tlsrpt.StatusInconclusive,
	}
	for _, c := range table.Cases {
		zone := dnstest.New("")
		c.TXT.AddTo(zone)
		want, known := words[c.Expect]
		if got := tlsrpt.LookupRecord(t.Context(), zone, c.Domain); !known || got.Status != want {
			t.Errorf("%s: got %v, want %q", c.ID, got.Status, c.Expect)
		}
	}
}
