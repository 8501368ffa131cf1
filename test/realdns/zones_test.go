package realdns_test

import (
	"fmt"
	"slices"
	"strings"
)

// largeText returns the text of one record that is more than the resolver takes
// over UDP.
func largeText() string { return strings.Repeat("0123456789", 600) }

// nameZones returns zones with one of each thing that a question can run into.
func nameZones() []zone {
	return []zone{
		{name: "example.test", signing: signed, records: `
plain     TXT   "plain text"
parts     TXT   "in " "three " "parts"
octets    TXT   "\"\\\000\195\188\255"
empty     TXT   ""
several   TXT   "first"
several   TXT   "second"
large     TXT   ` + characterStrings(largeText()) + `
@         MX    20 mail.unsigned.test.
@         MX    10 mail
mail      A     192.0.2.25
mail      AAAA  2001:db8::25
reverse   PTR   mail
tlsa      TLSA  3 1 1 ` + strings.Repeat("ab", 32) + `
below.ent TXT   "makes ent an empty non-terminal"
*.wild    TXT   "from the wildcard"
host.wild A     192.0.2.1
tree      DNAME plain.tree2
x.plain.tree2 TXT "below a DNAME"
alias     CNAME plain
toalias   CNAME alias
todata    CNAME mail
tomissing CNAME missing
tounsigned CNAME plain.unsigned.test.
toforged  CNAME plain.forged.test.
toforeign CNAME www.example.org.
circle1   CNAME circle2
circle2   CNAME circle1
` + aliasChain(9)},
		{name: "unsigned.test", records: `plain TXT "unsigned text"
tosigned CNAME plain.example.test.`},
		{name: "forged.test", signing: signed, vouched: wrongly, records: `plain TXT "forged text"`},
		{name: "compact.test", signing: compact, records: `plain TXT "signed when asked"`},
	}
}

// characterStrings writes a text as the strings of a TXT record.
func characterStrings(text string) string {
	return `"` + strings.Join(inStrings(text), `" "`) + `"`
}

// inStrings cuts a text into pieces that each fit a string of a TXT record, which
// has 255 octets at most.
func inStrings(text string) []string {
	var pieces []string
	for piece := range slices.Chunk([]byte(text), 255) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

// aliasChain returns records by which the name chainN is N aliases away from a
// text.
func aliasChain(length int) string {
	records := "chain0 TXT \"the end of the chain\"\n"
	for i := range length {
		records += fmt.Sprintf("chain%d CNAME chain%d\n", i+1, i)
	}
	return records
}
