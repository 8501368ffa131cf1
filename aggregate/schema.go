package aggregate

import (
	"bytes"
	"strings"
)

// node is a kind of element at its position in a report. There are fewer than 64, so a
// set of them is a uint64.
type node uint8

const (
	outside node = iota // no report yet
	wrapper             // an unknown element that may enclose parts of the report
	ignored             // any other unknown element and its content
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

// element is a possible child element.
type element struct {
	name string
	node node
	// many is true if it may be repeated.
	many bool
	// alias is true if it has another name in the specifications.
	alias bool
}

// sections are the parts of a report that are accepted even in a wrapper.
var sections = []element{
	{name: "record", node: record, many: true},
	{name: "report_metadata", node: metadata},
	{name: "policy_published", node: policy},
}

// schema lists the child elements of each element: those of RFC 7489, its drafts and RFC
// 9990, and other names that reporters use.
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

// parents is the set of elements with child elements.
const parents = 1<<outside | 1<<wrapper | 1<<ignored | 1<<extension | 1<<feedback | 1<<metadata | 1<<dateRange | 1<<policy |
	1<<record | 1<<row | 1<<evaluated | 1<<reason | 1<<identifiers | 1<<authResults | 1<<dkim | 1<<spf

// isValue reports whether the node contains text and no elements.
func (n node) isValue() bool { return parents>>n&1 == 0 }

// find returns the child element with that name. capital is true if it differs in case.
func (n node) find(name []byte) (found element, capital, ok bool) {
	for i := range schema[n] {
		if e := &schema[n][i]; e.name == string(name) {
			return *e, false, true
		}
	}
	for _, e := range schema[n] {
		if len(name) == len(e.name) && bytes.EqualFold(name, []byte(e.name)) {
			return e, true, true
		}
	}
	return element{}, false, false
}

// isLandmark reports whether this element in a wrong place means that another element was
// not closed. Other misplaced elements are probably extensions.
func (n node) isLandmark() bool {
	return n == record || n == metadata || n == policy || n == identifiers || n == authResults
}

// parts returns the set of descendants to reset when n starts.
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

// between returns the set of nodes between first and last, exclusive.
func between(first, last node) uint64 { return 1<<last - 1<<(first+1) }

const (
	// maxBindings limits the namespaces that are in scope at once. Further declarations
	// are ignored.
	maxBindings = 16
	// maxNamespace is how many bytes of a namespace name are compared.
	maxNamespace = 1024
)

// binding is a namespace declaration of an open element.
type binding struct{ prefix, uri string }

// namespace returns the namespace of a prefix for an element with the given attributes;
// the prefix "" means the default namespace. ok is false if it is not declared.
func (s *stack) namespace(prefix, attributes []byte) (uri string, ok bool) {
	if own := attribute(attributes, declarationOf(prefix)); own != nil {
		return namespaceName(own), true
	}
	for i := len(s.bindings) - 1; i >= 0; i-- {
		if s.bindings[i].prefix == string(prefix) {
			return s.bindings[i].uri, true
		}
	}
	return "", false
}

// declare adds the namespace declarations among the attributes of an element.
func (s *stack) declare(attributes []byte) {
	for len(s.bindings) < maxBindings {
		name, value, rest := nextAttribute(attributes)
		if name == nil {
			return
		}
		attributes = rest
		if prefix, ok := bytes.CutPrefix(name, []byte("xmlns")); ok && (len(prefix) == 0 || prefix[0] == ':') {
			s.bindings = append(s.bindings, binding{string(bytes.TrimPrefix(prefix, []byte(":"))), namespaceName(value)})
		}
	}
}

// declarationOf returns the name of the attribute that declares a prefix.
func declarationOf(prefix []byte) string {
	if len(prefix) == 0 {
		return "xmlns"
	}
	return "xmlns:" + string(prefix)
}

func namespaceName(value []byte) string {
	return string(bytes.TrimSpace(value[:min(len(value), maxNamespace)]))
}

// isForeign reports whether the current start tag is in a namespace that is neither that
// of the root element nor one of DMARC. Reporters use any namespace or none for the
// report, so that of the root counts as its own. Undeclared prefixes are ignored.
func (r *Reader) isForeign() bool {
	l := r.lex
	if len(l.prefix) == 0 && !bytes.Contains(l.attributes, []byte("xmlns")) {
		return false // same namespace as the parent
	}
	uri, ok := r.stack.namespace(l.prefix, l.attributes)
	return ok && uri != "" && uri != r.namespace && !isDMARC(uri)
}

// isDMARC reports whether a namespace belongs to a specification or one of its drafts.
func isDMARC(uri string) bool {
	for _, prefix := range []string{"urn:ietf:params:xml:ns:dmarc", "http://dmarc.org/", "https://dmarc.org/"} {
		if strings.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}
