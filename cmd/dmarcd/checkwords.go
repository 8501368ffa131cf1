package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// conclusion returns the one-line summary of a check.
func conclusion(check facts.Check) string {
	f := check.Facts
	if !check.Conclusive {
		return "The check was inconclusive: " + check.Reason + "."
	}
	for _, finding := range check.Findings {
		if finding.ID == "parked.locked" {
			return finding.What
		}
	}
	words := map[string]string{
		"":           "Anyone can send mail as " + f.Domain + ".",
		"none":       "Mail that spoofs " + f.Domain + " is delivered.",
		"quarantine": "Mail that spoofs " + f.Domain + " goes to the spam folder.",
		"reject":     "Mail that spoofs " + f.Domain + " is rejected.",
	}[f.DMARC.Applied]
	errors, warnings := 0, 0
	for _, finding := range check.Findings {
		switch finding.Level {
		case dmarcd.LevelError:
			errors++
		case dmarcd.LevelWarning:
			warnings++
		}
	}
	var counts []string
	for _, c := range []struct {
		n    int
		what string
	}{{errors, "error"}, {warnings, "warning"}} {
		if c.n > 0 {
			counts = append(counts, number(c.n, c.what))
		}
	}
	if len(counts) == 0 {
		return words
	}
	return words + " " + strings.Join(counts, ", ") + "."
}

// partRows returns the parts with their status and most important detail.
func partRows(f facts.Facts) [][3]string {
	return [][3]string{
		{"DMARC", f.DMARC.Status, policyWords(f.DMARC)},
		{"SPF", f.SPF.Status, lookupWords(f.SPF)},
		{"DKIM", dkimState(f.DKIM), keyWords(f.DKIM)},
		{"MX", f.MX.Status, hostWords(f.MX)},
		{"MTA-STS", f.MTASTS.Status, f.MTASTS.Mode},
		{"TLS-RPT", f.TLSRPT.Status, strings.Join(f.TLSRPT.Destinations, " ")},
		{"BIMI", f.BIMI.Status, f.BIMI.Location},
		{"DANE", f.DANE.Status, ""},
		{"DNSSEC", f.DNSSEC.Status, f.DNSSEC.Zone},
	}
}

// inconclusive is the status of a part whose lookups failed.
const inconclusive = "inconclusive"

func policyWords(f facts.DMARC) string {
	switch {
	case f.Policy == "" && f.Status == inconclusive:
		return "the lookup failed; the policy is unknown"
	case f.Policy == "":
		return "no policy applies"
	case f.Policy != f.Applied:
		return fmt.Sprintf("%s, applied as %s (from %s)", f.Policy, f.Applied, f.RecordDomain)
	}
	return fmt.Sprintf("%s (from %s)", f.Policy, f.RecordDomain)
}

func lookupWords(f facts.SPF) string {
	if f.Record == "" {
		if f.Status == inconclusive {
			return "the lookup failed"
		}
		return ""
	}
	return fmt.Sprintf("%d of 10 lookups", f.Lookups)
}

// dkimState returns the state of the keys. "not found" does not mean that there are none.
func dkimState(f facts.DKIM) string {
	state := "not found"
	switch {
	case f.Namespace == "missing":
		state = "none"
	case f.Probed > 0 && f.Unanswered == f.Probed:
		state = inconclusive
	}
	for _, key := range f.Keys {
		if key.Status == "found" {
			return "ok"
		}
		state = key.Status
	}
	return state
}

func keyWords(f facts.DKIM) string {
	var words []string
	for _, key := range f.Keys {
		word := key.Selector
		if key.Bits > 0 {
			word += fmt.Sprintf(" (%s %d)", key.Algorithm, key.Bits)
		}
		if key.Status != "found" {
			word += " " + key.Status
		}
		words = append(words, word)
	}
	switch {
	case len(words) > 0 || f.Namespace == "missing":
	case f.Probed > 0 && f.Unanswered == f.Probed:
		return fmt.Sprintf("the lookups of all %d common selectors failed", f.Probed)
	case f.Unanswered > 0:
		return fmt.Sprintf("%d common selectors checked, of which %s failed; there may be others", f.Probed, number(f.Unanswered, "lookup"))
	default:
		return fmt.Sprintf("%d common selectors checked; there may be others", f.Probed)
	}
	return strings.Join(words, ", ")
}

func hostWords(f facts.MX) string {
	var names []string
	for _, host := range f.Hosts {
		name := cmp.Or(host.Name, ".") // a null MX next to others
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
