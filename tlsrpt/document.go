package tlsrpt

import (
	"strings"
)

// document reads the values of a JSON document. Each method is called with the first
// token of the value and reads the rest.
type document struct {
	lex    *lexer
	limits Limits
	quirks *tally
	depth  int // open objects and lists
	bytes  int // total bytes of the texts
	known  int // number of RFC 8460 members found
}

// memberValue reads the colon after a name and the first token of the value.
func (d *document) memberValue() (token, error) {
	colon, err := d.lex.next()
	if err != nil {
		return 0, err
	}
	if colon != ':' {
		return 0, errMalformed
	}
	return d.lex.next()
}

// list reads a list, or a single value instead of one. It calls item with the first token
// of each value.
func (d *document) list(tok token, single Quirk, item func(tok token) error) error {
	switch tok {
	case '[':
		return d.elements(']', item)
	case tokenWord:
		return d.unusable(tok)
	default:
		d.quirks.Note(single)
		return item(tok)
	}
}

// elements reads the content of an object or a list up to end.
func (d *document) elements(end token, element func(tok token) error) error {
	if d.depth++; d.depth > d.limits.Depth {
		return reject(RejectedLimit, "objects and lists are nested too deeply")
	}
	separated := true // there was a comma or the opening bracket
	for first := true; ; first = false {
		tok, err := d.lex.next()
		switch {
		case err != nil:
			return err
		case tok == end:
			d.quirks.NoteIf(separated && !first, StrayComma)
			d.depth--
			return nil
		case tok == ',':
			d.quirks.NoteIf(separated, StrayComma)
			separated = true
			continue
		case !separated:
			return errMalformed
		}
		if err := element(tok); err != nil {
			return err
		}
		separated = false
	}
}

// isScalar reports whether the token is a scalar other than null.
func (d *document) isScalar(tok token) bool {
	return tok == tokenText || tok == tokenWord && string(d.lex.text) != "null"
}

// unusable skips a value of the wrong type.
func (d *document) unusable(tok token) error {
	if tok == tokenWord && string(d.lex.text) == "null" {
		d.quirks.Note(NullValue)
		return nil
	}
	if err := d.skip(tok); err != nil {
		return err
	}
	d.quirks.Note(ValueUnusable)
	return nil
}

// skip skips any value.
func (d *document) skip(tok token) error {
	switch tok {
	case tokenText, tokenWord:
		return nil
	case '[':
		return d.elements(']', d.skip)
	case '{':
		return d.elements('}', func(tok token) error {
			if tok != tokenText {
				return errMalformed
			}
			value, err := d.memberValue()
			if err != nil {
				return err
			}
			return d.skip(value)
		})
	default:
		return errMalformed
	}
}

// member is a member of an object, and how its value is read into a T.
type member[T any] struct {
	name  string
	read  func(r *reportReader, to *T, tok token) error
	alias string // the name in drafts before RFC 8460, or ""
}

// value returns a function for member.read that stores a value in a field.
func value[T, V any](field func(to *T) *V, read func(*reportReader, token) (V, error)) func(*reportReader, *T, token) error {
	return func(r *reportReader, to *T, tok token) (err error) {
		*field(to), err = read(r, tok)
		return err
	}
}

// The members of RFC 8460 §4.4.
var (
	reportMembers = []member[Report]{
		{name: memberOrganization, read: value(func(r *Report) *string { return &r.OrgName }, (*reportReader).text)},
		{name: memberContact, read: value(func(r *Report) *string { return &r.ContactInfo }, (*reportReader).text)},
		{name: memberReportID, read: value(func(r *Report) *string { return &r.ReportID }, (*reportReader).text)},
		{name: memberRange, read: (*reportReader).dateRange},
		{name: memberPolicies, read: (*reportReader).policies},
	}
	rangeMembers = []member[Report]{
		{name: "start-datetime", read: value(func(r *Report) *int64 { return &r.Begin }, (*reportReader).time)},
		{name: "end-datetime", read: value(func(r *Report) *int64 { return &r.End }, (*reportReader).time)},
	}
	entryMembers = []member[entry]{
		{name: memberPolicy, read: (*reportReader).policy},
		{name: memberSummary, read: (*reportReader).summary},
		{name: "failure-details", read: (*reportReader).failures},
	}
	policyMembers = []member[entry]{
		{name: "policy-type", read: value(func(e *entry) *PolicyType { return &e.Type }, (*reportReader).policyType)},
		{name: "policy-string", read: value(func(e *entry) *[]string { return &e.Strings }, (*reportReader).policyStrings)},
		{name: "policy-domain", read: value(func(e *entry) *string { return &e.Domain }, (*reportReader).domain)},
		{name: "mx-host", read: value(func(e *entry) *[]string { return &e.MXHosts }, (*reportReader).mxHosts)},
	}
	summaryMembers = []member[entry]{
		{name: memberSuccessful, read: value(func(e *entry) *int64 { return &e.Successful }, (*reportReader).count)},
		{name: memberFailed, read: value(func(e *entry) *int64 { return &e.Failed }, (*reportReader).count)},
	}
	failureMembers = []member[Failure]{
		{name: "result-type", read: value(func(f *Failure) *ResultType { return &f.ResultType }, (*reportReader).resultType)},
		{name: "sending-mta-ip", read: value(func(f *Failure) *string { return &f.SendingMTAIP }, (*reportReader).address)},
		{name: "receiving-mx-hostname", read: value(func(f *Failure) *string { return &f.ReceivingMXHostname }, (*reportReader).domain)},
		{name: "receiving-mx-helo", read: value(func(f *Failure) *string { return &f.ReceivingMXHelo }, (*reportReader).text)},
		{name: "receiving-ip", read: value(func(f *Failure) *string { return &f.ReceivingIP }, (*reportReader).address)},
		{name: memberFailedSessions, read: value(func(f *Failure) *int64 { return &f.FailedSessions }, (*reportReader).count)},
		{name: "additional-information", read: value(func(f *Failure) *string { return &f.AdditionalInformation }, (*reportReader).text)},
		{name: "failure-reason-code", alias: "failure-error-code", read: value(func(f *Failure) *string { return &f.ReasonCode }, (*reportReader).text)},
	}
)

// reportNames are the names of reportMembers.
var reportNames = []string{memberOrganization, memberContact, memberReportID, memberRange, memberPolicies}

// Members that are used more than once.
const (
	memberOrganization   = "organization-name"
	memberContact        = "contact-info"
	memberReportID       = "report-id"
	memberRange          = "date-range"
	memberPolicies       = "policies"
	memberPolicy         = "policy"
	memberSummary        = "summary"
	memberSuccessful     = "total-successful-session-count"
	memberFailed         = "total-failure-session-count"
	memberFailedSessions = "failed-session-count"
)

// members is a set of members of an object, as bits in the order of their table.
type members uint

// has reports whether the set contains the member with that name.
func has[T any](seen members, table []member[T], name string) bool {
	for i := range table {
		if table[i].name == name {
			return seen&(1<<i) != 0
		}
	}
	return false
}

// object reads an object into a T. It returns the members that the object has, even if
// it also returns an error.
func object[T any](r *reportReader, tok token, to *T, table []member[T]) (members, error) {
	if tok != '{' {
		return 0, r.unusable(tok)
	}
	var seen members
	err := r.elements('}', func(tok token) error {
		if tok != tokenText {
			return errMalformed
		}
		i := findMember(r.quirks, r.lex.text, table)
		value, err := r.memberValue()
		if err != nil {
			return err
		}
		if i < 0 {
			return r.skip(value)
		}
		r.known++
		r.quirks.NoteIf(seen&(1<<i) != 0, MemberRepeated)
		seen |= 1 << i
		return table[i].read(r, to, value)
	})
	return seen, err
}

// findMember returns the index of the member with that name in any spelling, or -1.
func findMember[T any](quirks *tally, name []byte, table []member[T]) int {
	for i := range table {
		if table[i].name == string(name) {
			return i
		}
	}
	plain := strings.ToLower(separators.Replace(string(name)))
	for i := range table {
		switch m := &table[i]; {
		case spells(plain, m.name):
			quirks.Note(MemberForm)
			return i
		case m.alias != "" && spells(plain, m.alias):
			quirks.Note(MemberAlias)
			return i
		}
	}
	quirks.Note(MemberUnknown)
	return -1
}

// separators are what distinguishes kebab-case and snake_case from lower case.
var separators = strings.NewReplacer("-", "", "_", "", " ", "")

// spells reports whether plain is the name without hyphens.
func spells(plain, name string) bool {
	for part := range strings.SplitSeq(name, "-") {
		rest, ok := strings.CutPrefix(plain, part)
		if !ok {
			return false
		}
		plain = rest
	}
	return plain == ""
}
