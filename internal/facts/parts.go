package facts

import (
	"slices"
	"strings"
)

// Part is the part of a check that a change in DNS belongs to.
type Part string

// The parts. MTA-STS includes the policy file.
const (
	PartDMARC  Part = "dmarc"
	PartSPF    Part = "spf"
	PartDKIM   Part = "dkim"
	PartMX     Part = "mx"
	PartMTASTS Part = "mta_sts"
	PartTLSRPT Part = "tls_rpt"
	PartBIMI   Part = "bimi"
	PartDANE   Part = "dane"
	PartDNSSEC Part = "dnssec"
)

// Parts returns all parts. The store numbers them in this order: new ones are added at the end.
func Parts() []Part {
	return []Part{PartDMARC, PartSPF, PartDKIM, PartMX, PartMTASTS, PartTLSRPT, PartBIMI, PartDANE, PartDNSSEC}
}

// Part returns the part of a change, "" if it is not a change in the DNS of the domain: a grade, a
// finding, how a selector is known, or an address of a mail server, which its operator changes.
func (c Change) Part() Part {
	switch c.Fact {
	case "dkim.{of}.from", "mx.{of}.addresses.{member}":
		return ""
	}
	name, _, _ := strings.Cut(string(c.Fact), ".")
	if part := Part(name); slices.Contains(Parts(), part) {
		return part
	}
	return ""
}

// PartsOf returns the parts that changed, in the order of Parts.
func PartsOf(changes []Change) []Part {
	var found []Part
	for _, part := range Parts() {
		if slices.ContainsFunc(changes, func(c Change) bool { return c.Part() == part }) {
			found = append(found, part)
		}
	}
	return found
}
