package dnscheck_test

import (
	"math/rand/v2"
	"strings"
)

// pick returns one of the items.
func pick[T any](r *rand.Rand, items ...T) T { return items[r.IntN(len(items))] }

// chance reports true in so many of a hundred cases.
func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// optional returns one of the texts in so many of a hundred cases, else "".
func optional(r *rand.Rand, percent int, texts ...string) string {
	if chance(r, percent) {
		return pick(r, texts...)
	}
	return ""
}

// policyTexts returns the texts that one name publishes, none of them twice.
func policyTexts(r *rand.Rand) []string {
	switch n := r.IntN(100); {
	case n < 58:
		return []string{recordText(r)}
	case n < 66:
		return []string{missText(r)}
	case n < 72:
		return []string{unrelatedText(r)}
	case n < 81:
		return distinct(recordText(r), recordText(r))
	case n < 86:
		return distinct(recordText(r), missText(r), recordText(r))
	case n < 92:
		return []string{missText(r), recordText(r)}
	case n < 99:
		return []string{recordText(r), unrelatedText(r)}
	default:
		return append(crowd(), recordText(r))
	}
}

// distinct drops the texts that were there before: a set of records holds none
// twice (RFC 2181 §5).
func distinct(texts ...string) []string {
	var stored []string
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			stored = append(stored, text)
		}
		seen[text] = true
	}
	return stored
}

// recordText returns a text that begins with the version, with tags that are
// valid, odd, invalid, unknown, repeated or missing.
func recordText(r *rand.Rand) string {
	version := "v=DMARC1"
	if chance(r, 8) {
		version = pick(r, "v = DMARC1", "v=DMARC1 ", "V=DMARC1", "v\t=\tDMARC1\t")
	}
	if chance(r, 3) {
		return version
	}
	var elements []string
	add := func(percent int, texts ...string) {
		if text := optional(r, percent, texts...); text != "" {
			elements = append(elements, text)
		}
	}
	add(3, "rua=mailto:first@example.net", "sp=none", "foo=bar")
	add(94, "p=none", "p=quarantine", "p=reject", "p=reject", "p=quarantine", "P=REJECT", "p = Quarantine", "p=None ")
	add(35, "sp=none", "sp=quarantine", "sp=reject", "sp\t=\treject", "SP=None", "sp=bogus")
	add(30, "np=none", "np=quarantine", "np=reject", "Np=Reject", "np=reject", "np=bogus")
	add(30, "psd=y", "psd=n", "psd=u", "psd=y", "psd=n", "PSD=Y", "psd = N", "psd=yes", "psd=")
	add(25, "t=y", "t=n", "T=Y", "t=maybe")
	add(35, goodDestinations...)
	add(6, badDestinations...)
	add(10, "pct=50", "pct=0", "pct=100", "pct=101", "pct=-1", "pct=half", "PCT=7")
	add(12, "adkim=s", "aspf=x", "fo=1:d", "foo=bar", "rf=afrf", "ri=3600")
	add(8, "", "x-y=1", "p reject", "=none", "9=9", "sp", "näh=1", " ; ")
	add(5, "p=bogus", "sp=bogus", "np=bogus", "sp=", "np=nönë", "p=", "p=reject now")
	add(5, "p=none", "sp=reject", "psd=y", "foo=baz", "t=n", "v=DMARC1", "rua=mailto:again@example.net")
	if chance(r, 10) {
		r.Shuffle(len(elements), func(i, j int) { elements[i], elements[j] = elements[j], elements[i] })
	}
	return version + ";" + strings.Join(elements, pick(r, "; ", "; ", ";", " ;\t")) + pick(r, "", ";", "; ")
}

var goodDestinations = []string{
	"rua=mailto:dmarc@example.net", "rua=mailto:a@example.net,mailto:b@example.org!10m", "RUA = mailto:a%2Cb@example.net",
	"rua=https://reports.example.net/dmarc", "rua=unknown@example.net, mailto:d@example.net", "rua=MAILTO:D@EXAMPLE.NET!5",
}

var badDestinations = []string{
	"rua=unknown@example.net", "rua=", "rua=mailto:", "rua=mailto:a@example.net!10p", "rua=,", "rua=mailto:nowhere", "rua=see our page",
}

// missText returns a text that is nearly a record.
func missText(r *rand.Rand) string {
	return pick(r, "v=dmarc1; p=reject", " v=DMARC1; p=reject", `"v=DMARC1; p=reject"`, `v=DMARC1\; p=reject`, "v=DMARC1 p=reject",
		"p=reject; v=DMARC1", "v=DMARC2; p=reject", "v=DMARC1.0; p=none", "v=DMARC12; p=none", "v=DMARC1, p=none", "v=DMARC1\x00; p=none",
		"DMARC1; p=reject", "v:DMARC1; p=reject", "v==DMARC1; p=reject", "v=DMARC1\n; p=none", "\ufeffv=DMARC1; p=reject", "v=DMARC")
}

// unrelatedText returns a text that has nothing to do with DMARC. The long ones
// make an answer longer than a UDP packet, about as long as 4,096 bytes, or longer.
func unrelatedText(r *rand.Rand) string {
	return pick(r, "v=spf1 -all", "", "\xff\xfe", "v", "google-site-verification=abc", "; ; ;",
		strings.Repeat("x", 400+r.IntN(300)), strings.Repeat("y", 1000+r.IntN(300)),
		strings.Repeat("z", 3900+r.IntN(200)), strings.Repeat("v=DMARC1;", 600+r.IntN(600))[1:])
}

// crowd returns more texts than the resolver accepts in one answer.
func crowd() []string {
	var texts []string
	for n := range 120 {
		texts = append(texts, strings.Repeat("c", n+1))
	}
	return texts
}
