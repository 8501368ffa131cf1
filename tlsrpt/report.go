package tlsrpt

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd/internal/quirk"
	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// Report is a TLS report (RFC 8460 §4). Texts are trimmed; absent and empty ones are "".
// Domains and hosts are in lower case without a trailing dot.
type Report struct {
	OrgName     string
	ContactInfo string
	ReportID    string
	// Begin and End are seconds since 1970. If the report states only one of them, they
	// are equal; if none, both are 0.
	Begin, End int64
	Policies   []Policy

	// Quirks are the deviations, in the order of Quirks().
	Quirks []QuirkCount
	// Content is a hash of the content: it does not depend on the order of members or the
	// style of JSON. It covers all fields except Quirks.
	Content [sha256.Size]byte
}

// Policy is a policy that the reporter applied to mail for a domain, with the results of
// the sessions.
type Policy struct {
	Type   PolicyType
	Domain string
	// Strings is the policy as found: the lines of an MTA-STS policy, or the TLSA
	// records.
	Strings []string
	// MXHosts are the MX patterns of an MTA-STS policy.
	MXHosts []string
	// Successful and Failed count sessions, from 0 to 2^53-1. Missing and invalid counts
	// are 0.
	Successful, Failed int64
	Failures           []Failure
}

// Failure is a group of sessions that failed in the same way. A session may be in several
// groups.
type Failure struct {
	ResultType ResultType
	// SendingMTAIP and ReceivingIP are addresses in canonical form, or the original text
	// if invalid.
	SendingMTAIP        string
	ReceivingMXHostname string
	// ReceivingMXHelo is the name that the receiving host announced.
	ReceivingMXHelo string
	ReceivingIP     string
	// FailedSessions is a count like Policy.Failed.
	FailedSessions int64
	// AdditionalInformation is usually a URI with more details.
	AdditionalInformation string
	ReasonCode            string
}

// PolicyType is one of the keywords below, or other text of the reporter.
type PolicyType string

// The policy types of RFC 8460 §4.2.
const (
	PolicyTLSA     PolicyType = "tlsa"
	PolicySTS      PolicyType = "sts"
	PolicyNotFound PolicyType = "no-policy-found"
)

// ResultType is one of the keywords below, or other text of the reporter.
type ResultType string

// The result types of RFC 8460 §4.3: of the TLS negotiation, of DANE, and of MTA-STS.
const (
	StartTLSNotSupported    ResultType = "starttls-not-supported"
	CertificateHostMismatch ResultType = "certificate-host-mismatch"
	CertificateExpired      ResultType = "certificate-expired"
	CertificateNotTrusted   ResultType = "certificate-not-trusted"
	ValidationFailure       ResultType = "validation-failure"

	TLSAInvalid   ResultType = "tlsa-invalid"
	DNSSECInvalid ResultType = "dnssec-invalid"
	DANERequired  ResultType = "dane-required"

	STSPolicyFetchError ResultType = "sts-policy-fetch-error"
	STSPolicyInvalid    ResultType = "sts-policy-invalid"
	STSWebPKIInvalid    ResultType = "sts-webpki-invalid"
)

var (
	policyTypes = []PolicyType{PolicyTLSA, PolicySTS, PolicyNotFound}
	resultTypes = []ResultType{
		StartTLSNotSupported, CertificateHostMismatch, CertificateExpired, CertificateNotTrusted, ValidationFailure,
		TLSAInvalid, DNSSECInvalid, DANERequired, STSPolicyFetchError, STSPolicyInvalid, STSWebPKIInvalid,
	}
)

// Known reports whether RFC 8460 defines the type.
func (t PolicyType) Known() bool { return slices.Contains(policyTypes, t) }

// Known reports whether RFC 8460 defines the type.
func (t ResultType) Known() bool { return slices.Contains(resultTypes, t) }

// Organization returns the name of the reporter: OrgName, or the domain of the address in
// ContactInfo if that is empty.
func (r Report) Organization() string {
	if r.OrgName != "" {
		return r.OrgName
	}
	at := strings.LastIndexByte(r.ContactInfo, '@')
	if at < 0 {
		return ""
	}
	return r.ContactInfo[at+1:]
}

// Sessions returns the sums of Successful and Failed over all policies. Each saturates at
// 2^52-1, so that their total is exact in JSON.
func (r Report) Sessions() (successful, failed int64) {
	for i := range r.Policies {
		successful = addCount(successful, r.Policies[i].Successful)
		failed = addCount(failed, r.Policies[i].Failed)
	}
	return successful, failed
}

// Key identifies a report of a reporter. Reports with equal keys are versions of one
// report. It is comparable.
type Key struct {
	// Organization is in lower case.
	Organization string
	// ReportID has no angle brackets, which some reporters put around it.
	ReportID string
	// Domain is the policy domain. If there are several, it is the first in alphabetical
	// order, so that the order of policies does not matter.
	Domain     string
	Begin, End int64
}

// Key returns the key of the report.
func (r Report) Key() Key {
	key := Key{
		Organization: strings.ToLower(r.Organization()),
		ReportID:     strings.TrimSpace(strings.Trim(r.ReportID, "<>")),
		Begin:        r.Begin,
		End:          r.End,
	}
	for i := range r.Policies {
		if domain := r.Policies[i].Domain; domain != "" && (key.Domain == "" || domain < key.Domain) {
			key.Domain = domain
		}
	}
	return key
}

// Limits limits the resources for one report. A zero or negative field means the value of
// DefaultLimits.
type Limits struct {
	// TextBytes limits one text or number. A report with a longer one is rejected.
	TextBytes int
	// TotalBytes limits the total size of the texts, because a report is in memory as a
	// whole. A larger report is rejected.
	TotalBytes int
	// Depth limits the nesting of objects and lists.
	Depth    int
	Policies int
	// Failures limits the failure details of all policies together.
	Failures int
	// Values limits the lines and the MX hosts of one policy; further ones are dropped
	// with a quirk.
	Values int
	// Latest is the latest plausible time, in seconds since 1970. A later one is a quirk.
	// 0 means no limit.
	Latest int64
}

// DefaultLimits returns limits far above those of real reports.
func DefaultLimits() Limits {
	return Limits{TextBytes: 64 << 10, TotalBytes: 32 << 20, Depth: 64, Policies: 10_000, Failures: 100_000, Values: 100}
}

// orDefault fills in defaults.
func (l Limits) orDefault() Limits {
	standard := DefaultLimits()
	l.TextBytes = cmp.Or(max(l.TextBytes, 0), standard.TextBytes)
	l.TotalBytes = cmp.Or(max(l.TotalBytes, 0), standard.TotalBytes)
	l.Depth = cmp.Or(max(l.Depth, 0), standard.Depth)
	l.Policies = cmp.Or(max(l.Policies, 0), standard.Policies)
	l.Failures = cmp.Or(max(l.Failures, 0), standard.Failures)
	l.Values = cmp.Or(max(l.Values, 0), standard.Values)
	return l
}

// Rejection is the reason why a document is rejected.
type Rejection string

const (
	// RejectedEmpty is an empty document.
	RejectedEmpty Rejection = "empty"
	// RejectedXML is XML or HTML, possibly an aggregate report.
	RejectedXML Rejection = "xml"
	// RejectedNotJSON is any other document that does not start like a JSON object.
	RejectedNotJSON Rejection = "not-json"
	// RejectedOtherJSON is a JSON document that is not a TLS report.
	RejectedOtherJSON Rejection = "other-json"
	// RejectedDamaged is a damaged report without a complete policy.
	RejectedDamaged Rejection = "damaged"
	// RejectedLimit is a report that exceeds one of the limits.
	RejectedLimit Rejection = "limit"
)

// RejectedError means that a document is not a report, or not a usable one.
type RejectedError struct {
	Why Rejection
	// Detail explains the reason.
	Detail string
}

func (e *RejectedError) Error() string { return "TLS report rejected: " + e.Detail }

// Quirk is a kind of deviation from RFC 8460. The zero value means none.
type Quirk uint8

// The quirks. Their names are stable: they are stored and part of the API.
var (
	quirks quirk.Table[Quirk]

	ByteOrderMark     = quirks.Define("byte_order_mark", "The document starts with a byte order mark.")
	OtherEncoding     = quirks.Define("other_encoding", "The document is not in UTF-8.")
	BadBytes          = quirks.Define("bad_bytes", "Invalid bytes were replaced.")
	UnescapedControl  = quirks.Define("unescaped_control", "A string contains an unescaped control character.")
	ControlCharacters = quirks.Define("control_characters", "Control characters in a string were removed.")
	BadEscape         = quirks.Define("bad_escape", "A string contains an invalid escape sequence, which was kept or replaced.")

	StrayWrapper = quirks.Define("stray_wrapper", "The report is inside a list.")
	StrayComma   = quirks.Define("stray_comma", "There is a superfluous comma.")
	Malformed    = quirks.Define("malformed", "The document is invalid JSON from some point on; the part before it was used.")
	Truncated    = quirks.Define("truncated", "The document is truncated.")
	TrailingJunk = quirks.Define("trailing_junk", "There is content after the report.")

	MemberForm     = quirks.Define("member_form", "The name of a member is spelled differently, such as reportId or report_id.")
	MemberAlias    = quirks.Define("member_alias", "A member has a nonstandard name.")
	MemberUnknown  = quirks.Define("member_unknown", "An unknown member was ignored.")
	MemberRepeated = quirks.Define("member_repeated", "A member is repeated; the last one applies.")

	NullValue         = quirks.Define("null_value", "A value is null; it is treated as absent.")
	ValueType         = quirks.Define("value_type", "A number is written as a string, or a string as a number or boolean.")
	ValueUnusable     = quirks.Define("value_unusable", "A value of the wrong type was ignored.")
	ValuePadded       = quirks.Define("value_padded", "A string is surrounded by blanks.")
	ValueCase         = quirks.Define("value_case", "A keyword contains upper-case letters.")
	ValueUnknown      = quirks.Define("value_unknown", "An unknown policy type or result type was kept unchanged.")
	SingleValue       = quirks.Define("single_value", "There is a single value instead of a list.")
	ListInText        = quirks.Define("list_in_text", "A list is written as JSON inside a string.")
	ValuesDropped     = quirks.Define("values_dropped", "Policy lines or MX hosts beyond the limit were ignored.")
	DomainCase        = quirks.Define("domain_case", "A domain or host contains upper-case letters.")
	DomainForm        = quirks.Define("domain_form", "A domain or host has a trailing dot.")
	DomainULabels     = quirks.Define("domain_u_labels", "A domain or host is written in U-labels; it was converted to A-labels.")
	AddressForm       = quirks.Define("address_form", "An address is not in canonical form.")
	AddressUnreadable = quirks.Define("address_unreadable", "An invalid address was kept unchanged.")

	OrgNameMissing  = quirks.Define("org_name_missing", "The name of the reporter is missing; the domain of its address is used instead.")
	ContactMissing  = quirks.Define("contact_missing", "The address of the reporter is missing.")
	ReportIDMissing = quirks.Define("report_id_missing", "The report has no id.")
	ReportIDForm    = quirks.Define("report_id_form", "The report id contains characters with a special meaning in file names and addresses, such as + / @ < >.")
	TimeZoneMissing = quirks.Define("time_zone_missing", "A time has no time zone; UTC was assumed.")
	TimeForm        = quirks.Define("time_form", "A time is not in the format of RFC 3339.")
	TimeNumber      = quirks.Define("time_number", "A time is a number of seconds or milliseconds.")
	TimeUnreadable  = quirks.Define("time_unreadable", "A time is invalid; it is treated as absent.")
	TimeImplausible = quirks.Define("time_implausible", "A time is before 2011 or more than two days in the future; if it is the start, the report counts on the day it was received.")
	RangeMissing    = quirks.Define("range_missing", "The period is missing.")
	RangeIncomplete = quirks.Define("range_incomplete", "One end of the period is missing or invalid.")
	RangeEmpty      = quirks.Define("range_empty", "The period is empty.")
	RangeReversed   = quirks.Define("range_reversed", "The period ends before it begins.")
	RangeLong       = quirks.Define("range_long", "The period is longer than a day.")

	PoliciesEmpty       = quirks.Define("policies_empty", "The report has no policies.")
	PolicyIncomplete    = quirks.Define("policy_incomplete", "An incomplete policy was skipped.")
	PolicyMissing       = quirks.Define("policy_missing", "An entry of the policies has no policy.")
	PolicyTypeMissing   = quirks.Define("policy_type_missing", "A policy has no type.")
	PolicyDomainMissing = quirks.Define("policy_domain_missing", "A policy has no domain.")
	MXHostMissing       = quirks.Define("mx_host_missing", "An MTA-STS policy has no mx-host.")
	MXHostText          = quirks.Define("mx_host_text", "The value of mx-host is a string instead of a list, as in the example of RFC 8460.")
	MXHostPrefix        = quirks.Define("mx_host_prefix", `An MX host is written as a line of a policy, with "mx:" before it.`)

	SummaryMissing    = quirks.Define("summary_missing", "A policy has no summary; its counts are 0.")
	CountMissing      = quirks.Define("count_missing", "A count is missing; 0 was assumed.")
	CountInvalid      = quirks.Define("count_invalid", "A count is not a whole number from 0 to 2^53-1; 0 was assumed.")
	CountForm         = quirks.Define("count_form", "A count is written with a sign, a fraction, an exponent or leading zeros.")
	DetailsMissing    = quirks.Define("details_missing", "A policy has failed sessions but no failure details.")
	DetailsExceed     = quirks.Define("details_exceed", "The failure details of a policy count more sessions than its summary.")
	ResultTypeMissing = quirks.Define("result_type_missing", "A failure detail has no result type.")
	PeerMissing       = quirks.Define("peer_missing", "A failure detail has neither an address nor a host.")
)

// Quirks returns all quirks in order.
func Quirks() []Quirk { return quirks.All() }

// String returns the stable name of the quirk, such as "mx_host_text".
func (q Quirk) String() string { return quirks.Name(q) }

// Meaning describes the quirk in one sentence.
func (q Quirk) Meaning() string { return quirks.Meaning(q) }

// QuirkCount is a quirk with its number of occurrences in a report.
type QuirkCount = quirk.Count[Quirk]

// tally counts quirks.
type tally struct{ quirk.Tally[Quirk] }

func reject(why Rejection, detail string) error {
	return &RejectedError{Why: why, Detail: detail}
}

func contentOf(r *Report) [sha256.Size]byte {
	sum := sha256.New()
	b := reporttext.AppendTexts(nil, r.OrgName, r.ContactInfo, r.ReportID)
	b = appendCounts(b, r.Begin, r.End, int64(len(r.Policies)))
	for i := range r.Policies {
		p := &r.Policies[i]
		b = reporttext.AppendTexts(b, string(p.Type), p.Domain)
		b = appendCounts(b, int64(len(p.Strings)), int64(len(p.MXHosts)), p.Successful, p.Failed, int64(len(p.Failures)))
		b = reporttext.AppendTexts(b, p.Strings...)
		b = reporttext.AppendTexts(b, p.MXHosts...)
		for j := range p.Failures {
			f := &p.Failures[j]
			b = reporttext.AppendTexts(b, string(f.ResultType), f.SendingMTAIP, f.ReceivingMXHostname, f.ReceivingMXHelo, f.ReceivingIP,
				f.AdditionalInformation, f.ReasonCode)
			b = appendCounts(b, f.FailedSessions)
			sum.Write(b)
			b = b[:0]
		}
	}
	sum.Write(b)
	return [sha256.Size]byte(sum.Sum(nil))
}

func appendCounts(b []byte, counts ...int64) []byte {
	for _, n := range counts {
		b = binary.AppendVarint(b, n)
	}
	return b
}
