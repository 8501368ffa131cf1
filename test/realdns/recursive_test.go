package realdns_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
)

func TestRecursiveServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	n := startNetwork(t, nameZones()...)
	r := newResolver(t, n.unbound.address)
	checkAnswers(t, r, []answerCase{
		{name: "text", ask: "plain.example.test", of: dns.TXT, want: data("plain text").authentic()},
		{name: "name in upper case", ask: "PLAIN.Example.Test.", of: dns.TXT, want: data("plain text").authentic()},
		{name: "text in parts", ask: "parts.example.test", of: dns.TXT, want: data("in |three |parts").authentic()},
		{name: "octets that a zone file escapes", ask: "octets.example.test", of: dns.TXT, want: data("\"\\\x00ü\xff").authentic()},
		{name: "empty text", ask: "empty.example.test", of: dns.TXT, want: data("").authentic()},
		{name: "several records", ask: "several.example.test", of: dns.TXT, want: data("first", "second").authentic()},
		{name: "large text, over TCP", ask: "large.example.test", of: dns.TXT, want: data(strings.Join(inStrings(largeText()), "|")).authentic()},
		{name: "MX", ask: "example.test", of: dns.MX, want: data("10 mail.example.test", "20 mail.unsigned.test").authentic()},
		{name: "A", ask: "mail.example.test", of: dns.A, want: data("192.0.2.25").authentic()},
		{name: "AAAA", ask: "mail.example.test", of: dns.AAAA, want: data("2001:db8::25").authentic()},
		{name: "NS", ask: "example.test", of: dns.NS, want: data("ns.example.test").authentic()},
		{name: "PTR", ask: "reverse.example.test", of: dns.PTR, want: data("mail.example.test").authentic()},
		{name: "TLSA", ask: "tlsa.example.test", of: dns.TLSA, want: data("030101" + strings.Repeat("ab", 32)).authentic()},

		{name: "no such type", ask: "plain.example.test", of: dns.MX, want: noData().authentic()},
		{name: "empty non-terminal", ask: "ent.example.test", of: dns.TXT, want: noData().authentic()},
		{name: "no such name", ask: "missing.example.test", of: dns.TXT, want: noSuchName().authentic()},
		{name: "name below a missing one", ask: "a.b.missing.example.test", of: dns.TXT, want: noSuchName().authentic()},

		{name: "wildcard", ask: "any.wild.example.test", of: dns.TXT, want: data("from the wildcard").authentic()},
		{name: "wildcard, several labels", ask: "a.b.wild.example.test", of: dns.TXT, want: data("from the wildcard").authentic()},
		{name: "wildcard of another type", ask: "any.wild.example.test", of: dns.A, want: noData().authentic()},
		{name: "wildcard beside a name", ask: "host.wild.example.test", of: dns.TXT, want: noData().authentic()},
		{name: "wildcard blocked by a name", ask: "any.host.wild.example.test", of: dns.TXT, want: noSuchName().authentic()},

		{name: "aliases", ask: "toalias.example.test", of: dns.TXT, want: data("plain text").via("alias.example.test", "plain.example.test").authentic()},
		{name: "alias itself", ask: "alias.example.test", of: dns.CNAME, want: data("plain.example.test").authentic()},
		{name: "alias of another type", ask: "todata.example.test", of: dns.TXT, want: noData().via("mail.example.test").authentic()},
		{name: "alias of a missing name", ask: "tomissing.example.test", of: dns.TXT, want: noSuchName().via("missing.example.test").authentic()},
		{name: "alias into an unsigned zone", ask: "tounsigned.example.test", of: dns.TXT, want: data("unsigned text").via("plain.unsigned.test")},
		{name: "alias from an unsigned zone", ask: "tosigned.unsigned.test", of: dns.TXT, want: data("plain text").via("plain.example.test")},
		{name: "alias into a forged zone", ask: "toforged.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "alias of a name without a server", ask: "toforeign.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "aliases in a circle", ask: "circle1.example.test", of: dns.TXT, reason: "answered SERVFAIL"},
		{name: "as many aliases as are followed", ask: "chain8.example.test", of: dns.TXT, want: data("the end of the chain").via(chainBelow(8)...).authentic()},
		{name: "one alias more", ask: "chain9.example.test", of: dns.TXT, reason: "chain9.example.test has more than 8 aliases in a row"},
		{name: "DNAME", ask: "x.tree.example.test", of: dns.TXT, want: data("below a DNAME").via("x.plain.tree2.example.test").authentic()},

		{name: "unsigned, data", ask: "plain.unsigned.test", of: dns.TXT, want: data("unsigned text")},
		{name: "unsigned, no data", ask: "plain.unsigned.test", of: dns.A, want: noData()},
		{name: "unsigned, no such name", ask: "missing.unsigned.test", of: dns.TXT, want: noSuchName()},
		{name: "unsigned, the absence of a DS record is proven", ask: "unsigned.test", of: dns.DS, want: noData().authentic()},
		{name: "forged, data", ask: "plain.forged.test", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
		{name: "forged, no such name", ask: "missing.forged.test", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
		{name: "compact, data", ask: "plain.compact.test", of: dns.TXT, want: data("signed when asked").authentic()},
		{name: "compact, a missing name exists without data", ask: "missing.compact.test", of: dns.TXT, want: noData().authentic()},
		{name: "no server for it", ask: "www.example.org", of: dns.TXT, reason: n.unbound.address.String() + " answered SERVFAIL"},
	})
}

// chainBelow returns the aliases that a question for a name of aliasChain meets.
func chainBelow(length int) []string {
	var aliases []string
	for i := length - 1; i >= 0; i-- {
		aliases = append(aliases, fmt.Sprintf("chain%d.example.test", i))
	}
	return aliases
}

// TestCrowd asks many different questions at once, each of which the recursive
// server has to ask and validate.
func TestCrowd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	const questions = 200
	n := startNetwork(t, nameZones()...)
	r := newResolver(t, n.unbound.address)
	var all sync.WaitGroup
	for i := range questions {
		all.Go(func() {
			name := fmt.Sprintf("n%d.wild.example.test", i)
			got := r.Resolve(t.Context(), dns.Question{Name: name, Type: dns.TXT})
			if texts := got.Texts(); len(texts) != 1 || texts[0] != "from the wildcard" || !got.Authentic {
				t.Errorf("%s: got %s, authentic %t, %q (%s) want the text of the wildcard", name, got.Outcome, got.Authentic, texts, got.Reason)
			}
		})
	}
	all.Wait()
}
