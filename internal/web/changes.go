package web

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// changeLine is the text of a difference between two checks.
type changeLine struct {
	// What describes the change; Before and After are the values.
	What, Before, After string
}

// changeLines returns the changes, without those that repeat another one.
func changeLines(changes []wire.Change) []changeLine {
	var lines []changeLine
	for _, change := range changes {
		if !repeats(change, changes) {
			lines = append(lines, changeLine{changeTitle(change.Path), change.Before, change.After})
		}
	}
	return lines
}

// repeats reports whether another change of the same check implies this one.
func repeats(change wire.Change, all []wire.Change) bool {
	has := func(holds func(other wire.Change) bool) bool { return slices.ContainsFunc(all, holds) }
	record := func(of string) bool {
		return has(func(other wire.Change) bool { return other.Path == of+".record" })
	}
	part, member := change.Path, ""
	if dot := strings.LastIndexByte(change.Path, '.'); dot >= 0 {
		part, member = change.Path[:dot], change.Path[dot+1:]
	}
	switch {
	case change.Path == "dmarc.applied" || change.Path == "dmarc.legacy.policy":
		return has(func(other wire.Change) bool {
			return other.Path == "dmarc.policy" && other.Before == change.Before && other.After == change.After
		})
	case strings.HasPrefix(change.Path, "dkim.") && member != "record":
		// The record shows that a key was added or removed.
		return record(part) && has(func(other wire.Change) bool { return other.Path == part+".selector" })
	case strings.Contains(change.Path, ".destinations."):
		part, _, _ = strings.Cut(change.Path, ".")
		return record(part)
	case member == "status":
		return record(part) && (change.Before == "none" || change.After == "none")
	}
	return false
}

// changeTitles describe members that occur once.
var changeTitles = map[string]string{
	"grade":                              "Grade",
	"dmarc.status":                       "DMARC record, its state",
	"dmarc.record":                       "DMARC record",
	"dmarc.record_domain":                "Whose DMARC record applies",
	"dmarc.organizational_domain":        "Organizational domain",
	"dmarc.policy":                       "Policy",
	"dmarc.applied":                      "Policy that receivers apply",
	"dmarc.legacy.policy":                "Policy for receivers of RFC 7489",
	"dmarc.legacy.record_domain":         "Whose DMARC record applies for receivers of RFC 7489",
	"dmarc.legacy.organizational_domain": "Organizational domain for receivers of RFC 7489",
	"spf.status":                         "SPF record, its state",
	"spf.reason":                         "SPF record, the reason of its state",
	"spf.record":                         "SPF record",
	"spf.lookups":                        "SPF lookups",
	"spf.void_lookups":                   "SPF void lookups",
	"mta_sts.status":                     "MTA-STS record, its state",
	"mta_sts.record":                     "MTA-STS record",
	"mta_sts.fetch":                      "MTA-STS policy, fetching it",
	"mta_sts.mode":                       "MTA-STS policy, its mode",
	"mta_sts.max_age":                    "MTA-STS policy, seconds that it holds",
	"tls_rpt.status":                     "TLS-RPT record, its state",
	"tls_rpt.record":                     "TLS-RPT record",
	"bimi.status":                        "BIMI record, its state",
	"bimi.record":                        "BIMI record",
	"bimi.record_domain":                 "Whose BIMI record applies",
	"bimi.location":                      "Logo",
	"bimi.evidence":                      "Mark certificate",
	"dane.status":                        "DANE",
	"dnssec.status":                      "DNSSEC",
	"dnssec.zone":                        "Zone",
}

// changeFamilies describe members that occur several times, by the prefix and suffix of
// the path, with the name or value between them.
var changeFamilies = []struct{ before, behind, words, more string }{
	{"spf.tree.", ".record", "", " now lists"},
	{"findings.", "", "Finding ", ""},
	{"dkim.", ".record", "DKIM key ", ""},
	{"dkim.", ".status", "DKIM key ", ", its state"},
	{"dkim.", ".bits", "DKIM key ", ", its length in bits"},
	{"dkim.", ".algorithm", "DKIM key ", ", its algorithm"},
	{"dkim.", ".testing", "DKIM key ", ", for testing"},
	{"dkim.", ".from", "DKIM key ", ", how its selector is known"},
	{"mx.", ".status", "Mail server ", ", its state"},
	{"mx.", ".preference", "Mail server ", ", its preference"},
	{"mx.", ".host", "Mail server ", ""},
	{"mta_sts.mx.", "", "MTA-STS policy, mail server ", ""},
	{"tls_rpt.destinations.", "", "TLS reports to ", ""},
	{"dmarc.destinations.", ".consent", "Reports to ", ", the consent"},
	{"dmarc.destinations.", ".uri", "Reports to ", ""},
	{"dmarc.destinations.", ".tag", "Reports to ", ", the tag"},
	{"dane.hosts.", ".status", "DANE of ", ""},
	{"dane.hosts.", ".host", "DANE of ", ", the host"},
}

// changeTitle returns the description of a path, or the path.
func changeTitle(path string) string {
	if words, ok := changeTitles[path]; ok {
		return words
	}
	for _, list := range []struct{ before, between, words string }{
		{"mx.", ".addresses.", ", an address"}, {"dkim.", ".aliases.", ", an alias"}, {"dane.hosts.", ".records.", ", a TLSA record"},
	} {
		rest, ok := strings.CutPrefix(path, list.before)
		if name, _, found := strings.Cut(rest, list.between); ok && found {
			return name + list.words
		}
	}
	for _, family := range changeFamilies {
		rest, begins := strings.CutPrefix(path, family.before)
		name, ends := strings.CutSuffix(rest, family.behind)
		if begins && ends {
			return family.words + name + family.more
		}
	}
	return path
}
