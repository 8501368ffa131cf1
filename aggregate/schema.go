package aggregate

import "bytes"

// node is an element by its place in a report. There are fewer than 64, so that a
// set of them is a uint64.
type node uint8

const (
	outside node = iota // no report yet
	wrapper             // an unknown element that may enclose parts of the report
	ignored             // any other unknown element, and everything in it
	extension
	feedback
	version
	metadata
	orgName
	email
	extraContact
	reportID
	dateRange
	rangeBegin
	rangeEnd
	reportError
	generator
	policy
	policyDomain
	policyP
	policySP
	policyNP
	policyADKIM
	policyASPF
	policyPercent
	policyFO
	policyTesting
	policyDiscovery
	policyPSD
	record
	row
	sourceIP
	count
	evaluated
	disposition
	evaluatedDKIM
	evaluatedSPF
	reason
	reasonType
	reasonComment
	identifiers
	headerFrom
	envelopeFrom
	envelopeTo
	authResults
	dkim
	dkimDomain
	dkimSelector
	dkimResult
	dkimHuman
	spf
	spfDomain
	spfScope
	spfResult
	spfHuman

	nodeCount
)

// element is one element that another may have.
type element struct {
	name string
	node node
	// many says that it may be repeated.
	many bool
	// alias says that the specifications give it another name.
	alias bool
}

// sections are the parts of a report that are found even in a wrapper.
var sections = []element{
	{name: "record", node: record, many: true},
	{name: "report_metadata", node: metadata},
	{name: "policy_published", node: policy},
}

// schema lists the elements that each element may have: those of RFC 7489, its
// drafts and RFC 9990 together, and the other names that reporters have for them.
var schema = [nodeCount][]element{
	wrapper: sections,
	feedback: append([]element{
		{name: "version", node: version},
		{name: "extension", node: extension},
	}, sections...),
	metadata: {
		{name: "org_name", node: orgName},
		{name: "email", node: email},
		{name: "extra_contact_info", node: extraContact},
		{name: "report_id", node: reportID},
		{name: "date_range", node: dateRange},
		{name: "error", node: reportError, many: true},
		{name: "generator", node: generator},
	},
	dateRange: {
		{name: "begin", node: rangeBegin},
		{name: "end", node: rangeEnd},
	},
	policy: {
		{name: "domain", node: policyDomain},
		{name: "p", node: policyP},
		{name: "sp", node: policySP},
		{name: "np", node: policyNP},
		{name: "adkim", node: policyADKIM},
		{name: "aspf", node: policyASPF},
		{name: "pct", node: policyPercent},
		{name: "fo", node: policyFO},
		{name: "testing", node: policyTesting},
		{name: "t", node: policyTesting, alias: true},
		{name: "discovery_method", node: policyDiscovery},
		{name: "psd", node: policyPSD, alias: true},
	},
	record: {
		{name: "row", node: row},
		{name: "identifiers", node: identifiers},
		{name: "identities", node: identifiers, alias: true},
		{name: "auth_results", node: authResults},
	},
	row: {
		{name: "source_ip", node: sourceIP},
		{name: "count", node: count},
		{name: "policy_evaluated", node: evaluated},
	},
	evaluated: {
		{name: "disposition", node: disposition},
		{name: "dkim", node: evaluatedDKIM},
		{name: "spf", node: evaluatedSPF},
		{name: "reason", node: reason, many: true},
	},
	reason: {
		{name: "type", node: reasonType},
		{name: "comment", node: reasonComment},
	},
	identifiers: {
		{name: "header_from", node: headerFrom},
		{name: "envelope_from", node: envelopeFrom},
		{name: "envelope_to", node: envelopeTo},
	},
	authResults: {
		{name: "dkim", node: dkim, many: true},
		{name: "spf", node: spf, many: true},
	},
	dkim: {
		{name: "domain", node: dkimDomain},
		{name: "selector", node: dkimSelector},
		{name: "result", node: dkimResult},
		{name: "human_result", node: dkimHuman},
	},
	spf: {
		{name: "domain", node: spfDomain},
		{name: "scope", node: spfScope},
		{name: "result", node: spfResult},
		{name: "human_result", node: spfHuman},
	},
}

// parents is the set of the elements of a report that have elements in them.
const parents = 1<<outside | 1<<wrapper | 1<<ignored | 1<<extension | 1<<feedback | 1<<metadata | 1<<dateRange | 1<<policy |
	1<<record | 1<<row | 1<<evaluated | 1<<reason | 1<<identifiers | 1<<authResults | 1<<dkim | 1<<spf

// isValue reports whether the node has a text and no elements.
func (n node) isValue() bool { return parents>>n&1 == 0 }

// find returns the element of that name in n, and whether the name differs from
// it in capital letters.
func (n node) find(name []byte) (found element, capital, ok bool) {
	for _, e := range schema[n] {
		if e.name == string(name) {
			return e, false, true
		}
	}
	for _, e := range schema[n] {
		if len(name) == len(e.name) && bytes.EqualFold(name, []byte(e.name)) {
			return e, true, true
		}
	}
	return element{}, false, false
}

// isLandmark reports whether an element of that name in n, where it does not
// belong, is a sign that n was not closed. Other elements in a wrong place are
// more likely the reporter's own.
func (n node) isLandmark() bool {
	return n == record || n == metadata || n == policy || n == identifiers || n == authResults
}

// parts returns the set of the elements in n that are read anew each time that n
// begins.
func (n node) parts() uint64 {
	switch n {
	case record:
		return between(record, nodeCount)
	case reason:
		return between(reason, identifiers)
	case dkim:
		return between(dkim, spf)
	case spf:
		return between(spf, nodeCount)
	default:
		return 0
	}
}

// between returns the set of the nodes behind first and before last.
func between(first, last node) uint64 { return 1<<last - 1<<(first+1) }
