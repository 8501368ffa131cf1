package web

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// changeLine is the text of a difference between two checks.
type changeLine struct {
	// What describes the change; Before and After are the values.
	What, Before, After string
}

// changeLines returns the changes, without those that repeat another one, and without findings
// of level good that begin or end: what broke is another finding.
func changeLines(changes []wire.Change) []changeLine {
	var lines []changeLine
	for _, change := range changes {
		good := strings.HasPrefix(change.Path, "findings.") && change.Before+change.After == string(dmarcd.LevelGood)
		if !good && !repeats(change, changes) {
			lines = append(lines, newChangeLine(change))
		}
	}
	return lines
}

// newChangeLine describes a change. That of a finding is its level, "" without it.
func newChangeLine(change wire.Change) changeLine {
	id, ok := strings.CutPrefix(change.Path, "findings.")
	switch {
	case !ok:
		return changeLine{changeTitle(change.Path), change.Before, change.After}
	case change.Before == "":
		text := id + " (" + change.After + ")"
		return changeLine{"New finding", text, text}
	case change.After == "":
		text := id + " (" + change.Before + ")"
		return changeLine{"Finding no longer reported", text, text}
	}
	return changeLine{"Level of the finding " + id, change.Before, change.After}
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
	case strings.HasPrefix(change.Path, "dkim.") && member == "from":
		return true // how the selector is known does not change DNS
	case strings.HasPrefix(change.Path, "dkim.") && member != "record":
		// The record shows that a key was added or removed.
		return has(func(other wire.Change) bool {
			return other.Path == part+".record" && (other.Before == "" || other.After == "")
		})
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
	"dmarc.status":                       "Status of the DMARC record",
	"dmarc.record":                       "DMARC record",
	"dmarc.record_domain":                "Domain of the DMARC record",
	"dmarc.organizational_domain":        "Organizational domain",
	"dmarc.policy":                       "Policy",
	"dmarc.applied":                      "Policy that receivers apply",
	"dmarc.legacy.policy":                "Policy under RFC 7489",
	"dmarc.legacy.record_domain":         "Domain of the DMARC record under RFC 7489",
	"dmarc.legacy.organizational_domain": "Organizational domain under RFC 7489",
	"spf.status":                         "Status of the SPF record",
	"spf.reason":                         "Reason for the status of the SPF record",
	"spf.record":                         "SPF record",
	"spf.lookups":                        "SPF lookups",
	"spf.void_lookups":                   "SPF void lookups",
	"mta_sts.status":                     "Status of the MTA-STS record",
	"mta_sts.record":                     "MTA-STS record",
	"mta_sts.fetch":                      "Download of the MTA-STS policy",
	"mta_sts.mode":                       "Mode of the MTA-STS policy",
	"mta_sts.max_age":                    "max_age of the MTA-STS policy (seconds)",
	"tls_rpt.status":                     "Status of the TLS-RPT record",
	"tls_rpt.record":                     "TLS-RPT record",
	"bimi.status":                        "Status of the BIMI record",
	"bimi.record":                        "BIMI record",
	"bimi.record_domain":                 "Domain of the BIMI record",
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
	{"dkim.", ".record", "DKIM key ", ""},
	{"dkim.", ".status", "DKIM key ", ": status"},
	{"dkim.", ".bits", "DKIM key ", ": length in bits"},
	{"dkim.", ".algorithm", "DKIM key ", ": algorithm"},
	{"dkim.", ".testing", "DKIM key ", ": test mode"},
	{"mx.", ".status", "Mail server ", ": status"},
	{"mx.", ".preference", "Mail server ", ": preference"},
	{"mx.", ".host", "Mail server ", ""},
	{"mta_sts.mx.", "", "MTA-STS policy: mail server ", ""},
	{"tls_rpt.destinations.", "", "TLS reports to ", ""},
	{"dmarc.destinations.", ".consent", "Reports to ", ": authorization"},
	{"dmarc.destinations.", ".uri", "Reports to ", ""},
	{"dmarc.destinations.", ".tag", "Reports to ", ": tag"},
	{"dane.hosts.", ".status", "DANE of ", ""},
	{"dane.hosts.", ".host", "DANE of ", ": host"},
}

// changeTitle returns the description of a path, or the path.
func changeTitle(path string) string {
	if words, ok := changeTitles[path]; ok {
		return words
	}
	for _, list := range []struct{ before, between, words string }{
		{"mx.", ".addresses.", ": address"}, {"dkim.", ".aliases.", ": alias"}, {"dane.hosts.", ".records.", ": TLSA record"},
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
