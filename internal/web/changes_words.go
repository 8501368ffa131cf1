package web

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// changeLine is the text of a difference between two checks.
type changeLine struct {
	// What is the name of what changed.
	What string
	// Before and After are the values, "" if there is none; Diff are their terms.
	Before, After string
	Diff          []ui.DiffPart
}

// maxChangeLines limits the lines of a check on a page.
const maxChangeLines = 20

// changeLines describes the changes of a check in the DNS, records first and the grade last, without
// those that follow from others.
func changeLines(changes []facts.Change) []changeLine {
	var records, values, last []changeLine
	for _, change := range changes {
		line := changeLine{What: changeTitle(change.Path()), Before: change.Before, After: change.After, Diff: ui.DiffTerms(change.Before, change.After)}
		if change.Before != "" && change.After != "" && !slices.ContainsFunc(line.Diff, func(p ui.DiffPart) bool { return p.Change != "" }) {
			line.What += ", in another order"
		}
		line.Diff = ui.Shorten(line.Diff)
		switch {
		case change.Fact == facts.NameGrade:
			last = append(last, line)
		case change.Part() == "" || repeats(change, changes):
		case strings.HasSuffix(string(change.Fact), ".record"):
			records = append(records, line)
		default:
			values = append(values, line)
		}
	}
	return slices.Concat(records, values, last)
}

// partNames are the names of the parts of a check.
var partNames = map[facts.Part]string{
	facts.PartDMARC: "DMARC", facts.PartSPF: "SPF", facts.PartDKIM: "DKIM", facts.PartMX: "MX", facts.PartMTASTS: "MTA-STS",
	facts.PartTLSRPT: "TLS-RPT", facts.PartBIMI: "BIMI", facts.PartDANE: "DANE", facts.PartDNSSEC: "DNSSEC",
}

// repeats reports whether another change of the same check implies this one.
func repeats(change facts.Change, all []facts.Change) bool {
	has := func(holds func(other facts.Change) bool) bool { return slices.ContainsFunc(all, holds) }
	record := func(of string) bool {
		return has(func(other facts.Change) bool { return other.Path() == of+".record" })
	}
	path := change.Path()
	part, member := path, ""
	if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
		part, member = path[:dot], path[dot+1:]
	}
	switch {
	case path == "dmarc.effective_policy" || path == "dmarc.legacy.policy":
		return has(func(other facts.Change) bool {
			return other.Path() == "dmarc.policy" && other.Before == change.Before && other.After == change.After
		})
	case strings.HasPrefix(path, "dkim.") && member != "record":
		// The record shows that a key was added or removed.
		return has(func(other facts.Change) bool {
			return other.Path() == part+".record" && (other.Before == "" || other.After == "")
		})
	case strings.Contains(path, ".destinations."):
		part, _, _ = strings.Cut(path, ".")
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
	"dmarc.effective_policy":             "Policy that receivers apply",
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
	"dmarc.reason":                       "Reason for the status of the DMARC record",
	"mta_sts.reason":                     "Reason for the status of the MTA-STS record",
	"tls_rpt.reason":                     "Reason for the status of the TLS-RPT record",
	"bimi.reason":                        "Reason for the status of the BIMI record",
	"dane.reason":                        "Reason for the status of DANE",
	"dnssec.reason":                      "Reason for the status of DNSSEC",
}

// changeFamilies describe members that occur several times, by the prefix and suffix of
// the path, with the name or value between them.
var changeFamilies = []struct{ before, behind, words, more string }{
	{"spf.tree.", ".record", "", " now lists"},
	{"dkim.", ".record", "DKIM key ", ""},
	{"dkim.", ".status", "DKIM key ", ": status"},
	{"dkim.", ".reason", "DKIM key ", ": reason for the status"},
	{"dkim.", ".selector", "DKIM selector ", ""},
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
