package realdns_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
)

// TestAuthoritativeServer asks the authority itself, as an operator does who puts its
// address into the configuration in the place of a recursive server. It answers
// for its own zones and validates nothing.
func TestAuthoritativeServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Log(needsServers)
		return
	}
	k := startKnot(t, append(nameZones(), zone{name: "parent.test", records: "child NS ns.elsewhere.test.\n"})...)
	checkAnswers(t, newResolver(t, k.address), []answerCase{
		{name: "text", ask: "plain.example.test", of: dns.TXT, want: data("plain text")},
		{name: "unsigned", ask: "plain.unsigned.test", of: dns.TXT, want: data("unsigned text")},
		{name: "forged to those who validate", ask: "plain.forged.test", of: dns.TXT, want: data("forged text")},
		{name: "octets that a zone file escapes", ask: "octets.example.test", of: dns.TXT, want: data("\"\\\x00ü\xff")},
		{name: "large text, over TCP", ask: "large.example.test", of: dns.TXT, want: data(strings.Join(inStrings(largeText()), "|"))},
		{name: "no such type", ask: "plain.example.test", of: dns.MX, want: noData()},
		{name: "empty non-terminal", ask: "ent.example.test", of: dns.TXT, want: noData()},
		{name: "no such name", ask: "missing.example.test", of: dns.TXT, want: noSuchName()},
		{name: "wildcard", ask: "any.wild.example.test", of: dns.TXT, want: data("from the wildcard")},
		{name: "wildcard blocked by a name", ask: "any.host.wild.example.test", of: dns.TXT, want: noSuchName()},

		{name: "aliases", ask: "toalias.example.test", of: dns.TXT, want: data("plain text").via("alias.example.test", "plain.example.test")},
		{name: "alias of a missing name", ask: "tomissing.example.test", of: dns.TXT, want: noSuchName().via("missing.example.test")},
		{name: "alias into another of its zones", ask: "tounsigned.example.test", of: dns.TXT, want: data("unsigned text").via("plain.unsigned.test")},
		{name: "alias into a zone of another server", ask: "toforeign.example.test", of: dns.TXT, reason: k.address.String() + " answered REFUSED"},
		{name: "aliases in a circle", ask: "circle1.example.test", of: dns.TXT, reason: "the aliases of circle1.example.test lead in a circle"},
		{name: "as many aliases as are followed", ask: "chain8.example.test", of: dns.TXT, want: data("the end of the chain").via(chainBelow(8)...)},
		{name: "one alias more", ask: "chain9.example.test", of: dns.TXT, reason: "chain9.example.test has more than 8 aliases in a row"},
		{name: "DNAME", ask: "x.tree.example.test", of: dns.TXT, want: data("below a DNAME").via("x.plain.tree2.example.test")},

		// Without the DO bit there is no NSEC record whose meaning could be bent:
		// the same zone says through a recursive server that the name exists.
		{name: "compact, no such name", ask: "missing.compact.test", of: dns.TXT, want: noSuchName()},
		{name: "zone of another server", ask: "www.example.org", of: dns.TXT, reason: k.address.String() + " answered REFUSED"},
		{name: "zone that it delegates", ask: "www.child.parent.test", of: dns.TXT, reason: k.address.String() + " sent a referral instead of an answer"},
	})
}
