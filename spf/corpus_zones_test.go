package spf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/corpustest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/spf"
)

// TestSteppedSuites runs tables whose documents repeat keys: they are read from
// top to bottom, and a line "expect" is a check of what was said before it.
func TestSteppedSuites(t *testing.T) {
	t.Parallel()
	suites := []struct {
		file   string
		checks int
		known  corpustest.Disagreements
	}{
		{file: "a.yml", checks: 16},
		{file: "all.yml", checks: 6, known: corpustest.Disagreements{
			"1": "the record ends in the unknown mechanism ip:10.0.0.1, and §4.6 finds errors of syntax anywhere, after all too",
		}},
		{file: "examples.yml", checks: 35},
		{file: "exp.yml", checks: 4},
		{file: "ip.yml", checks: 13, known: corpustest.Disagreements{
			"11": "an IPv4 client does not match ip6, not even with a mapped address: §5 has it considered an IPv4 address",
		}},
		{file: "macro.yml", checks: 6, known: corpustest.Disagreements{
			"4": "the name has an AAAA record alone, and §5.7 looks for A records whatever the client's family is",
		}},
		{file: "ptr.yml", checks: 8},
	}
	for _, suite := range suites {
		t.Run(suite.file, func(t *testing.T) {
			t.Parallel()
			data := corpustest.File(t, path.Join("stalwartlabs+mail-auth/resources/spf", suite.file))
			s := stepped{comparison: corpustest.Compare(t, suite.known)}
			decoder := yaml.NewDecoder(bytes.NewReader(data))
			for {
				var document yaml.Node
				err := decoder.Decode(&document)
				if errors.Is(err, io.EOF) {
					break
				}
				musttest.Do(t, err)
				s.records = nil
				s.walk(t, &document)
			}
			if s.checks != suite.checks {
				t.Errorf("got %d checks, want %d", s.checks, suite.checks)
			}
		})
	}
}

// stepped is what the lines of a table have said so far.
type stepped struct {
	comparison *corpustest.Comparison
	records    []dns.Record
	identity   spf.Identity
	checks     int
}

func (s *stepped) walk(t *testing.T, n *yaml.Node) {
	t.Helper()
	if n.Kind != yaml.MappingNode {
		for _, inner := range n.Content {
			s.walk(t, inner)
		}
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "name":
		case "records", "tests":
			s.walk(t, value)
		case "domain":
			s.identity.Helo = value.Value
		case "sender":
			s.identity.MailFrom = value.Value
		case "ip":
			s.identity.IP = netip.MustParseAddr(value.Value)
		case "expect":
			s.expect(t, value.Value)
		default:
			s.set(t, key, value.Value)
		}
	}
}

// set replaces the records of one type at a name.
func (s *stepped) set(t *testing.T, key, line string) {
	t.Helper()
	name, data, _ := strings.Cut(line, " ")
	var added []dns.Record
	switch key {
	case "spf", "exp":
		added = []dns.Record{{Name: name, Type: dns.TXT, Text: []string{data}}}
	case "a", "aaaa":
		for addr := range strings.SplitSeq(data, ", ") {
			added = append(added, addressRecord(name, netip.MustParseAddr(addr)))
		}
	case "ptr":
		added = []dns.Record{{Name: reverseName(t, name), Type: dns.PTR, Host: data}}
	case "mx": // of a domain with the addresses of its exchangers
		for i, addr := range strings.Split(data, ", ") {
			host := fmt.Sprintf("exchanger%d.%s", i, name)
			added = append(added, dns.Record{Name: name, Type: dns.MX, Host: host},
				addressRecord(host, netip.MustParseAddr(addr)))
		}
	default:
		t.Fatalf("unknown line %q", key)
	}
	s.records = slices.DeleteFunc(s.records, func(r dns.Record) bool {
		return slices.ContainsFunc(added, func(a dns.Record) bool { return a.Name == r.Name && a.Type == r.Type })
	})
	s.records = append(s.records, added...)
}

func (s *stepped) expect(t *testing.T, want string) {
	t.Helper()
	s.checks++
	zone := dnstest.New("")
	zone.Add(s.records...)
	v := spf.Check(context.Background(), zone, s.identity)
	got := strings.TrimSpace(v.Result.String() + " " + v.Explanation)
	s.comparison.Compare(strconv.Itoa(s.checks), got == want, v, want)
}
