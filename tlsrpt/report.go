package tlsrpt

import (
	"crypto/sha256"
	"slices"
	"strings"
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
