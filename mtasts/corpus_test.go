package mtasts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/mtasts"
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

// disagreements holds, by the name of a case, why we differ from a table.
type disagreements map[string]string

// judge compares one case and keeps the list of disagreements honest: one that
// does not disagree any more is a failure too. What was judged is taken off the
// list, so that what remains names no case.
func (d disagreements) judge(t *testing.T, id string, agrees bool, detail any) {
	t.Helper()
	reason, listed := d[id]
	delete(d, id)
	switch {
	case agrees && listed:
		t.Errorf("%s: got what the table wants, but a disagreement is listed: %s", id, reason)
	case !agrees && !listed:
		t.Errorf("%s: got something else than the table wants: %+v", id, detail)
	}
}

// rest fails the test for listed cases that the table does not have.
func (d disagreements) rest(t *testing.T) {
	t.Helper()
	for id := range d {
		t.Errorf("%s: a disagreement is listed, but there is no such case", id)
	}
}

func TestCorpusRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file  string
		known disagreements
	}{
		{file: "mjl-+mox/mta-sts-record-parse.json"},
		{file: "stalwartlabs+mail-auth/mta-sts-and-tlsrpt-record-parse.json"},
		{file: "domainaware+checkdmarc/mta-sts-record-parse.json", known: disagreements{
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
			if !corpusTable(t, tt.file, &table) {
				return
			}
			for _, c := range table.Cases {
				if strings.HasPrefix(c.Record, "v=TLSRPT") {
					continue // the other half of a mixed table
				}
				record, _ := mtasts.ParseRecord(c.Record)
				agrees := record.Valid == c.Expect.Valid && (c.Expect.ID == "" || record.ID == c.Expect.ID)
				tt.known.judge(t, c.ID, agrees, record)
			}
			tt.known.rest(t)
		})
	}
}

func TestCorpusPolicies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file  string
		known disagreements
	}{
		{file: "mjl-+mox/mta-sts-policy-parse.json"},
		{file: "domainaware+checkdmarc/mta-sts-policy-parse.json", known: disagreements{
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
			if !corpusTable(t, tt.file, &table) {
				return
			}
			for _, c := range table.Cases {
				got, want := mtasts.ParsePolicy(c.Policy), c.Expect
				mode, mx, age := want.Mode+want.OtherMode, slices.Concat(want.MX, want.OtherMX), max(want.MaxAge, want.OtherMaxAge)
				agrees := got.Valid == want.Valid && (mode == "" || got.Mode.String() == mode) &&
					(mx == nil || slices.Equal(got.MX, mx)) && (age == 0 || got.MaxAge == time.Duration(age)*time.Second)
				tt.known.judge(t, c.ID, agrees, got)
			}
			tt.known.rest(t)
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
	if !corpusTable(t, "mjl-+mox/mta-sts-mx-match.json", &table) {
		return
	}
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
			TXT                map[string]json.RawMessage `json:"zone_txt"`
			CNAME              map[string]string          `json:"zone_cname"`
		}
	}
	if !corpusTable(t, "mjl-+mox/mta-sts-lookup.json", &table) {
		return
	}
	words := map[string]mtasts.Status{
		"ok": mtasts.StatusOK, "no record": mtasts.StatusNone, "multiple records": mtasts.StatusMultiple,
		"malformed": mtasts.StatusInvalid, "dns error": mtasts.StatusInconclusive,
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
	if !corpusTable(t, "mjl-+mox/mta-sts-fetch.json", &table) {
		return
	}
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
