package dnscheck

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/spf"
)

const (
	lookupLimit = 10 // RFC 7208 §4.6.4
	nearLimit   = 9
	udpLimit    = 512 // RFC 7208 §3.4
)

// The parts of records that are handled separately when records are merged.
const (
	softFail       = "~all"
	redirectPrefix = "redirect="
)

// spfFindings maps SPF problems to findings.
var spfFindings = map[string]mapping{
	string(spf.InvalidCharacter):    {"spf.syntax_error", "it contains a non-ASCII character"},
	string(spf.MalformedTerm):       {"spf.syntax_error", "this is neither a mechanism nor a modifier"},
	string(spf.UnknownMechanism):    {"spf.syntax_error", "the mechanism {text} is unknown"},
	string(spf.QualifiedModifier):   {"spf.syntax_error", "a modifier cannot have a qualifier (+ - ~ ?)"},
	string(spf.RepeatedModifier):    {"spf.syntax_error", "it may occur only once"},
	string(spf.MissingValue):        {"spf.syntax_error", "the name or network is missing"},
	string(spf.UnexpectedValue):     {"spf.syntax_error", "unexpected value {text}"},
	string(spf.InvalidDomain):       {"spf.syntax_error", "{text} is not a domain name"},
	string(spf.AddressAsDomain):     {"spf.syntax_error", "{text} is an IP address; use ip4: or ip6: instead"},
	string(spf.InvalidMacro):        {"spf.syntax_error", "{text} is not a valid macro"},
	string(spf.InvalidAddress):      {"spf.syntax_error", "{text} is not a valid address of that family"},
	string(spf.InvalidPrefixLength): {"spf.syntax_error", "{text} is not a valid prefix length"},

	string(spf.PassAll):         {"spf.pass_all", ""},
	string(spf.NeutralAll):      {"spf.neutral_all", ""},
	string(spf.NoAll):           {"spf.no_all", ""},
	string(spf.TermsAfterAll):   {"spf.terms_after_all", ""},
	string(spf.RedirectIgnored): {"spf.redirect_ignored", ""},
	string(spf.PTRUsed):         {"spf.ptr", ""},
	string(spf.BroadRange):      {"spf.broad_range", ""},
	string(spf.HostBits):        {"spf.host_bits", ""},
	string(spf.DuplicateTerm):   {"spf.duplicate_term", ""},
	string(spf.UnknownModifier): {"spf.unknown_modifier", ""},
	string(spf.LongRecord):      {"spf.long_record", ""},

	string(spf.LookupLimit):     {"spf.too_many_lookups", ""},
	string(spf.VoidLimit):       {"spf.too_many_void_lookups", ""},
	string(spf.MXLimit):         {"spf.too_many_mx", ""},
	string(spf.MultipleRecords): {"spf.broken_include", "that name has {count} SPF records"},
	string(spf.NoRecord):        {"spf.broken_include", "that name has no SPF record"},
	string(spf.NoSuchName):      {"spf.broken_include", "that name does not exist"},
	string(spf.Loop):            {"spf.loop", ""},
	string(spf.MalformedName):   {"spf.malformed_name", ""},
	string(spf.VoidLookup):      {"spf.void_lookup", ""},
	string(spf.Inconclusive):    {}, // reported once, by the status
	string(spf.NotPass):         {}, // this and the next two are of records that are flattened
	string(spf.NotMovable):      {},
	string(spf.LongTerm):        {},
	string(spf.Truncated):       {"spf.tree_too_large", ""},
	string(spf.Overlap):         {"spf.overlap", ""},
	string(spf.LongString):      {"spf.long_string", ""},
	string(spf.NearMiss):        {"spf.stray_text", ""},
	string(spf.SenderID):        {"spf.sender_id", ""},
}

// ownOnly lists findings that only the owner of a record can fix, and that do not affect
// records that include it.
var ownOnly = []string{
	"spf.neutral_all", "spf.no_all", "spf.terms_after_all", "spf.redirect_ignored", "spf.ptr", "spf.broad_range",
	"spf.host_bits", "spf.duplicate_term", "spf.unknown_modifier", "spf.long_record", "spf.void_lookup",
	"spf.malformed_name", "spf.overlap", "spf.long_string", "spf.stray_text", "spf.sender_id",
}

// spf evaluates the SPF records.
func (e *evaluation) spf() {
	f := e.facts.SPF
	switch spf.Status(f.Status) {
	case spf.StatusNone:
		e.spfMissing(f)
		return
	case spf.StatusMultiple:
		e.addRecord("spf.multiple_records", words{"count": strconv.Itoa(len(f.Records))}, txtRecord(e.facts.Domain, spf.Merge(f.Records)))
		return
	case spf.StatusInconclusive:
		e.add("spf.inconclusive", words{"reason": f.Reason})
	}
	if f.Lookups > lookupLimit {
		e.add("spf.too_many_lookups", words{"count": strconv.Itoa(f.Lookups), "limit": strconv.Itoa(lookupLimit), "costly": costly(f.Tree)})
	}
	if len(f.Record) > udpLimit {
		e.add("spf.record_too_long", words{"at": e.facts.Domain, "count": strconv.Itoa(len(f.Record))})
	}
	effective := redirected(e.facts.Domain, f.Tree)
	for _, p := range f.Problems {
		e.spfProblem(f, p, effective)
	}
	w := words{"count": strconv.Itoa(f.Lookups), "limit": strconv.Itoa(lookupLimit), "costly": costly(f.Tree)}
	if f.Status == string(spf.StatusOK) {
		if f.Lookups >= nearLimit {
			e.add("spf.near_lookup_limit", w)
		}
		if !has(f.Problems, string(spf.PassAll)) && len(f.Record) <= udpLimit {
			e.add("spf.valid", w)
		}
	}
}

// spfMissing reports a missing or malformed record.
func (e *evaluation) spfMissing(f facts.SPF) {
	record := "v=spf1 mx ~all"
	switch mx := e.facts.MX.Status; {
	case e.unused() || mx == mxNull:
		record = denyAll
	case mx == mxImplicit: // without MX records, mx would look up nothing
		record = "v=spf1 a ~all"
	case mx == mxNone:
		record = "v=spf1 ~all"
	}
	for _, p := range f.Problems {
		if p.Kind == string(spf.NearMiss) {
			e.addRecord("spf.near_miss", words{"text": p.Text}, txtRecord(e.facts.Domain, cmp.Or(meantSPF(p.Text), record)))
			return
		}
	}
	e.addRecord("spf.missing", nil, txtRecord(e.facts.Domain, record))
}

// statedSPF matches the version at the start of a malformed record.
var statedSPF = regexp.MustCompile(`(?i)^\s*v?\s*[=:]?\s*spf1?[\s;,:]*`)

// meantSPF returns the record that the owner meant with a malformed one, so that its senders are
// not lost. It is "" if its terms cannot be parsed.
func meantSPF(text string) string {
	text = statedSPF.ReplaceAllString(quotes.Replace(text), "")
	record, err := spf.Parse("v=spf1 " + strings.ReplaceAll(text, ";", " "))
	if err != nil || len(record.Terms) == 0 {
		return ""
	}
	return fixedSPF(record.Text, facts.Problem{}, nil)
}

// spfProblem reports one problem. The records in effective decide about all senders that
// no term matches; included records do not.
func (e *evaluation) spfProblem(f facts.SPF, p facts.Problem, effective []string) {
	how := spfFindings[p.Kind]
	own := slices.Contains(effective, p.At)
	w := problemWords(p).with("at", cmp.Or(p.At, e.facts.Domain)).with("part", cmp.Or(p.Part, "the record"))
	w["flaw"] = fill(how.flaw, w)
	switch {
	case how.id == "" || how.id == "spf.too_many_lookups":
		return // reported for the whole record
	case slices.Contains(ownOnly, how.id) && !own:
		return
	case how.id == "spf.pass_all" && !own:
		e.add("spf.included_pass_all", w)
	case how.id == "spf.too_many_void_lookups":
		e.add(how.id, w.with("names", listed(voidNames(f.Problems))).with("count", strconv.Itoa(f.VoidLookups)))
	case how.id == "spf.void_lookup" && has(f.Problems, string(spf.VoidLimit)):
		return // the finding about the limit lists them all
	case how.id == "spf.long_record" && p.Count > udpLimit:
		return // reported as spf.record_too_long
	default:
		e.addRecord(how.id, w, txtRecord(w["at"], fixedSPF(recordOf(e.facts, p.At), p, brokenTerms(f.Problems, p.At))))
	}
}

// redirected returns the domain and the targets of its redirects.
func redirected(domain string, terms []facts.SPFTerm) []string {
	names := []string{domain}
	for _, t := range terms {
		if strings.HasPrefix(strings.ToLower(t.Term), redirectPrefix) && t.Terms != nil {
			names = append(names, redirected(t.Target, t.Terms)...)
		}
	}
	return names
}

// recordOf returns the record of a domain in the SPF tree.
func recordOf(f facts.Facts, domain string) string {
	if domain == f.Domain || domain == "" {
		return f.SPF.Record
	}
	for _, t := range f.SPF.Tree {
		if record := recordBelow(t, domain); record != "" {
			return record
		}
	}
	return ""
}

func recordBelow(t facts.SPFTerm, domain string) string {
	if t.Target == domain && t.Record != "" {
		return t.Record
	}
	for _, child := range t.Terms {
		if record := recordBelow(child, domain); record != "" {
			return record
		}
	}
	return ""
}

// brokenTerms returns the terms of a domain's record that make it a permerror.
func brokenTerms(problems []facts.Problem, at string) []string {
	var terms []string
	for _, p := range problems {
		id := spfFindings[p.Kind].id
		if p.At == at && slices.Contains([]string{"spf.syntax_error", "spf.broken_include", "spf.loop"}, id) {
			terms = append(terms, p.Part)
		}
	}
	return terms
}

// fixedSPF returns the record without the term in question and without terms that cause a
// permerror, ending in a failing all. A record with redirect gets no all, because that
// would disable the redirect (RFC 7208 §6.1).
func fixedSPF(record string, p facts.Problem, broken []string) string {
	all, handsOver := "", false
	var terms []string
	for _, term := range strings.Fields(record) {
		name := strings.ToLower(strings.TrimLeft(term, "+-~?"))
		switch {
		case name == "all":
			all = cmp.Or(all, failing(term))
		case term == p.Part && p.Kind == string(spf.PTRUsed), slices.Contains(broken, term):
		default:
			handsOver = handsOver || strings.HasPrefix(name, redirectPrefix)
			terms = append(terms, term)
		}
	}
	if all == "" && !handsOver {
		all = softFail
	}
	if all != "" {
		terms = append(terms, all)
	}
	return strings.Join(terms, " ")
}

// failing returns the all term if it fails others, else ~all.
func failing(all string) string {
	if strings.HasPrefix(all, "-") || strings.HasPrefix(all, "~") {
		return all
	}
	return softFail
}

// costly lists the terms with the most lookups.
func costly(terms []facts.SPFTerm) string {
	const most = 3
	sorted := slices.DeleteFunc(slices.Clone(terms), func(t facts.SPFTerm) bool { return t.Cost == 0 })
	slices.SortStableFunc(sorted, func(a, b facts.SPFTerm) int { return cmp.Compare(b.Cost, a.Cost) })
	var names []string
	for _, t := range sorted[:min(len(sorted), most)] {
		names = append(names, fmt.Sprintf("%s (%d)", t.Term, t.Cost))
	}
	return listed(names)
}

// voidNames returns the names without records.
func voidNames(problems []facts.Problem) []string {
	var names []string
	for _, p := range problems {
		if p.Kind == string(spf.VoidLookup) && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}
