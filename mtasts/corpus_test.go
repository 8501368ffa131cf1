package mtasts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/mtasts"
)

func TestCorpusRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file  string
		known corpustest.Disagreements
	}{
		{file: "mjl-+mox/mta-sts-record-parse.json"},
		{file: "stalwartlabs+mail-auth/mta-sts-and-tlsrpt-record-parse.json"},
		{file: "domainaware+checkdmarc/mta-sts-record-parse.json", known: corpustest.Disagreements{
			"Test.testParseMtaStsRecordDuplicateTag": "RFC 8461 §3.2: of a field that is duplicated all entries except for the first are ignored",
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			var table struct {
				Cases []struct {
					ID, Record string
					Expect     struct {
						Valid bool
						ID    string
					}
				}
			}
			corpustest.Table(t, tt.file, &table)
			comparison := corpustest.Compare(t, tt.known)
			for _, c := range table.Cases {
				if strings.HasPrefix(c.Record, "v=TLSRPT") {
					continue // the other half of a mixed table
				}
				record, _ := mtasts.ParseRecord(c.Record)
				agrees := record.Valid == c.Expect.Valid && (c.Expect.ID == "" || record.ID == c.Expect.ID)
				comparison.Compare(c.ID, agrees, record, c.Expect)
			}
		})
	}
}

func TestCorpusPolicies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file  string
		known corpustest.Disagreements
	}{
		{file: "mjl-+mox/mta-sts-policy-parse.json"},
		{file: "domainaware+checkdmarc/mta-sts-policy-parse.json", known: corpustest.Disagreements{
			"Test.testParseMtaStsPolicyDuplicateKey":  "RFC 8461 §3.2: of a field that is duplicated all entries except for the first are ignored",
			"Test.testParseMtaStsPolicyUnexpectedKey": "RFC 8461 §3.2: unknown fields are ignored",
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			var table struct {
				Cases []struct {
					ID, Policy string
					Expect     struct {
						Valid       bool
						Mode        string
						MX          []string
						MaxAge      int      `json:"max_age"`
						OtherMode   string   `json:"policy.mode"`
						OtherMX     []string `json:"policy.mx"`
						OtherMaxAge int      `json:"policy.max_age"`
					}
				}
			}
			corpustest.Table(t, tt.file, &table)
			comparison := corpustest.Compare(t, tt.known)
			for _, c := range table.Cases {
				got, want := mtasts.ParsePolicy(c.Policy), c.Expect
				mode, mx, age := want.Mode+want.OtherMode, slices.Concat(want.MX, want.OtherMX), max(want.MaxAge, want.OtherMaxAge)
				agrees := got.Valid == want.Valid && (mode == "" || got.Mode.String() == mode) &&
					(mx == nil || slices.Equal(got.MX, mx)) && (age == 0 || got.MaxAge == time.Duration(age)*time.Second)
				comparison.Compare(c.ID, agrees, got, want)
			}
		})
	}
}

func TestCorpusMatches(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, MX   string
			PolicyMX []string `json:"policy_mx"`
			Expect   struct{ Match bool }
		}
	}
	corpustest.Table(t, "mjl-+mox/mta-sts-mx-match.json", &table)
	for _, c := range table.Cases {
		if got := (mtasts.Policy{MX: c.PolicyMX}).Allows(c.MX); got != c.Expect.Match {
			t.Errorf("%s: got %v, want %v", c.ID, got, c.Expect.Match)
		}
	}
}

func TestCorpusLookups(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, Domain, Expect string
			TXT                corpustest.Texts  `json:"zone_txt"`
			CNAME              map[string]string `json:"zone_cname"`
		}
	}
	corpustest.Table(t, "mjl-+mox/mta-sts-lookup.json", &table)
	words := map[string]mtasts.Status{
		"ok": mtasts.StatusOK, "no record": mtasts.StatusNone, "multiple records": mtasts.StatusMultiple,
		"malformed": mtasts.StatusInvalid, "dns error": mtasts.StatusInconclusive,
	}
	for _, c := range table.Cases {
		zone := dnstest.New("")
		c.TXT.AddTo(zone)
		for name, target := range c.CNAME {
			zone.Add(dns.Record{Name: name, Type: dns.CNAME, Host: target})
		}
		want, known := words[c.Expect]
		if got := mtasts.LookupRecord(t.Context(), zone, c.Domain); !known || got.Status != want {
			t.Errorf("%s: got %v, want %q", c.ID, got.Status, c.Expect)
		}
	}
}

func TestCorpusFetches(t *testing.T) {
	t.Parallel()
	var table struct {
		Cases []struct {
			ID, TLS, Body, Expect string
			Code                  int `json:"http_status"`
		}
	}
	corpustest.Table(t, "mjl-+mox/mta-sts-fetch.json", &table)
	ca := newAuthority(t)
	// The source has one word for several of our outcomes.
	words := map[string][]mtasts.FetchStatus{
		"fetch error": {mtasts.FetchBadCertificate, mtasts.FetchBadStatus},
		"no policy":   {mtasts.FetchBadStatus},
		"fetch error (redirects are not followed)": {mtasts.FetchRedirect},
		"policy syntax (size limit)":               {mtasts.FetchInvalid},
		"ok, mode none":                            {mtasts.FetchOK},
	}
	for _, c := range table.Cases {
		until, body := now.AddDate(1, 0, 0), c.Body
		if c.TLS == "expired certificate" {
			until = now.AddDate(0, -1, 0)
		}
		if strings.HasPrefix(body, "<64 KiB") {
			body = strings.Repeat("\x00", mtasts.MaxPolicySize+2)
		}
		client := ca.serve(t, ca.issue(t, host, until), answer(c.Code, "text/plain", body))
		if got := mtasts.Fetch(t.Context(), client, "example.com"); !slices.Contains(words[c.Expect], got.Status) {
			t.Errorf("%s: got %v (%s), want %q", c.ID, got.Status, got.Reason, c.Expect)
		}
	}
}
