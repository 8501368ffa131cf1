package spf_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	miekg "github.com/miekg/dns"
	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/spf"
)

// scenario is one document of a suite in the form of the openspf.org tests.
type scenario struct {
	Description string
	Tests       map[string]struct {
		Helo, Host, MailFrom, Explanation string
		Result                            oneOrMore
	}
	ZoneData map[string][]yaml.Node
}

// oneOrMore is a YAML string or a list of them.
type oneOrMore []string

func (o *oneOrMore) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(o))
	}
	*o = []string{n.Value}
	return nil
}

// singleLabel is why we differ from the suite of another Go implementation.
const singleLabel = "the suite uses names of one label: §4.3 gives none for such a <domain>, and §7.1 wants a domain-spec that ends in a dot and a top-level label"

func TestSuites(t *testing.T) {
	t.Parallel()
	suites := []struct {
		file    string
		results int
		known   corpustest.Disagreements
	}{
		{file: "sdgathman+pyspf/test/rfc7208-tests.yml", results: 203},
		{file: "postalsys+mailauth/test/fixtures/spf/rfc7208-tests.yml", results: 200},
		{file: "postalsys+mailauth/test/fixtures/spf/rfc7208-tests-2014-05.yml", results: 193},
		{file: "sdgathman+pyspf/test/rfc4408-tests.yml", results: 191},
		{file: "albertito+spf/testdata/blitirispf-tests.yml", results: 21, known: corpustest.Disagreements{
			"Resolution limits/resolution-with-10-lookups": singleLabel,
			"MX resolution limits/mx-resolution-10-terms":  singleLabel,
			"MX resolution limits/mx-resolution-11-terms":  singleLabel,
			"NXDOMAIN tests/one-mx-not-found":              singleLabel,
			"NXDOMAIN tests/all-mx-not-found":              singleLabel,
			"NXDOMAIN tests/include-not-found":             singleLabel,
			"NXDOMAIN tests/redirect-not-found":            singleLabel,
		}},
	}
	for _, suite := range suites {
		t.Run(suite.file, func(t *testing.T) {
			t.Parallel()
			data := corpustest.File(t, suite.file)
			decoder := yaml.NewDecoder(bytes.NewReader(data))
			comparison, results := corpustest.Compare(t, suite.known), 0
			for {
				var s scenario
				err := decoder.Decode(&s)
				if errors.Is(err, io.EOF) {
					break
				}
				musttest.Do(t, err)
				zone := s.zone(t)
				for name, c := range s.Tests {
					id := s.Description + "/" + name
					results++
					v := spf.Check(context.Background(), zone, spf.Identity{
						IP: netip.MustParseAddr(c.Host), Helo: c.Helo, MailFrom: c.MailFrom, Time: time.Unix(1, 0),
					})
					comparison.Compare(id, slices.Contains(c.Result, v.Result.String()), v, c.Result)
					// The suites write hexadecimal digits in upper case, the
					// examples of §7.4 in lower case; no rule says which.
					if c.Explanation != "" && c.Explanation != "DEFAULT" && !strings.EqualFold(v.Explanation, c.Explanation) {
						t.Errorf("%s: got explanation %q, want %q", id, v.Explanation, c.Explanation)
					}
					if c.Explanation == "DEFAULT" && v.Explanation != "" {
						t.Errorf("%s: got explanation %q, want none", id, v.Explanation)
					}
				}
			}
			if results != suite.results {
				t.Errorf("got %d results, want %d", results, suite.results)
			}
		})
	}
}

// zone builds the DNS of a scenario. A record of type SPF stands for one of type
// TXT too, unless the name lists TXT records, if only with the word NONE. A name
// that times out does so for the types that it has no records of.
func (s scenario) zone(t *testing.T) *dnstest.Zone {
	t.Helper()
	zone := dnstest.New("")
	for name, entries := range s.ZoneData {
		fails, ownTXT := false, false
		var spfRecords []dns.Record
		types := make(map[dns.Type]bool)
		add := func(records ...dns.Record) {
			zone.Add(records...)
			for _, r := range records {
				types[r.Type] = true
			}
		}
		for i := range entries {
			n := &entries[i]
			if n.Kind == yaml.ScalarNode { // the word TIMEOUT alone
				fails = true
				continue
			}
			key, value := n.Content[0].Value, n.Content[1]
			switch key {
			case "TIMEOUT", "SERVFAIL":
				fails = true
			case "SPF":
				spfRecords = append(spfRecords, textRecord(t, name, value))
			case "TXT":
				ownTXT = true
				if value.Value != "NONE" {
					add(textRecord(t, name, value))
				}
			default:
				add(suiteRecord(t, name, key, value))
			}
		}
		if !ownTXT {
			add(spfRecords...)
		}
		for _, typ := range []dns.Type{dns.A, dns.AAAA, dns.MX, dns.PTR, dns.TXT} {
			if fails && !types[typ] {
				zone.Fail(name, typ)
			}
		}
	}
	return zone
}

// textRecord reads a TXT record, one string or a list of them.
func textRecord(t *testing.T, name string, value *yaml.Node) dns.Record {
	t.Helper()
	r := dns.Record{Name: name, Type: dns.TXT}
	musttest.Do(t, value.Decode((*oneOrMore)(&r.Text)))
	return r
}

// suiteRecord reads a record of one of the other types.
func suiteRecord(t *testing.T, name, key string, value *yaml.Node) dns.Record {
	t.Helper()
	switch key {
	case "A", "AAAA":
		return addressRecord(name, netip.MustParseAddr(value.Value))
	case "MX":
		r := dns.Record{Name: name, Type: dns.MX, Host: value.Content[1].Value}
		musttest.Do(t, value.Content[0].Decode(&r.Preference))
		return r
	case "PTR":
		return dns.Record{Name: name, Type: dns.PTR, Host: value.Value}
	case "CNAME":
		return dns.Record{Name: name, Type: dns.CNAME, Host: value.Value}
	default:
		t.Fatalf("unknown entry %q at %q", key, name)
		return dns.Record{}
	}
}

// addressRecord returns the A or AAAA record of an address.
func addressRecord(name string, addr netip.Addr) dns.Record {
	if addr.Is4() {
		return dns.Record{Name: name, Type: dns.A, Addr: addr}
	}
	return dns.Record{Name: name, Type: dns.AAAA, Addr: addr}
}

// reverseName returns the name of the PTR records of an address.
func reverseName(t *testing.T, addr string) string {
	t.Helper()
	return musttest.Get(miekg.ReverseAddr(addr))(t)
}
