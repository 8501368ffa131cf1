package tlsrpt

import (
	"crypto/sha256"
	"slices"
	"strings"
)

// Report is a TLS report (RFC 8460 §4). Texts are as the reporter wrote them,
// without blanks around them; what is absent or empty is "". Domains and hosts are
// in lower case without a trailing dot.
type Report struct {
	OrgName     string
	ContactInfo string
	ReportID    string
	// Begin and End are seconds since 1970 in UTC. Where the report states only one
	// of them, the other is the same; where it states none, both are 0.
	Begin, End int64
	Policies   []Policy

	// Quirks holds the deviations met, in the order of the table of quirks.
	Quirks []QuirkCount
	// Content is a hash of what was read: equal for reports that say the same in
	// another order of members or style of JSON. It covers all fields but Quirks.
	Content [sha256.Size]byte
}

// Policy is one policy that the reporter applied to mail for a domain, and what
// became of the sessions under it.
type Policy struct {
	Type   PolicyType
	Domain string
	// Strings holds the policy as it was found: the lines of an MTA-STS policy, or
	// the TLSA records.
	Strings []string
	// MXHosts holds the patterns of MX hosts of an MTA-STS policy.
	MXHosts []string
	// Successful and Failed count sessions, from 0 to 2^53-1. Where the report does
	// not state a count that can be read, it is 0.
	Successful, Failed int64
	Failures           []Failure
}

// Failure is a group of sessions that failed in the same way. One session may be in
// several groups.
type Failure struct {
	ResultType ResultType
	// SendingMTAIP and ReceivingIP are addresses in canonical form, or the text as
	// it stands where that is no address.
	SendingMTAIP        string
	ReceivingMXHostname string
	// ReceivingMXHelo is how the receiving host called itself.
	ReceivingMXHelo string
	ReceivingIP     string
	// FailedSessions is the number of sessions, as in Policy.Failed.
	FailedSessions int64
	// AdditionalInformation is mostly a URI with more about the failure.
	AdditionalInformation string
	ReasonCode            string
}

// PolicyType is one of the words below in lower case, or what the reporter wrote
// instead.
type PolicyType string

// The policy types of RFC 8460 §4.2.
const (
	PolicyTLSA     PolicyType = "tlsa"
	PolicySTS      PolicyType = "sts"
	PolicyNotFound PolicyType = "no-policy-found"
)

// ResultType is one of the words below in lower case, or what the reporter wrote
// instead.
type ResultType string

// The result types of RFC 8460 §4.3: those of the negotiation, of DANE, and of
// MTA-STS.
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

// The vocabularies.
var (
	policyTypes = []PolicyType{PolicyTLSA, PolicySTS, PolicyNotFound}
	resultTypes = []ResultType{
		StartTLSNotSupported, CertificateHostMismatch, CertificateExpired, CertificateNotTrusted, ValidationFailure,
		TLSAInvalid, DNSSECInvalid, DANERequired, STSPolicyFetchError, STSPolicyInvalid, STSWebPKIInvalid,
	}
)

// Known reports whether RFC 8460 has the type.
func (t PolicyType) Known() bool { return slices.Contains(policyTypes, t) }

// Known reports whether RFC 8460 has the type.
func (t ResultType) Known() bool { return slices.Contains(resultTypes, t) }

// Organization returns the name of the reporter: OrgName, or where that is empty
// the domain of the mail address in ContactInfo.
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

// Sessions returns the sums of Successful and Failed over all policies. Each
// saturates at 2^52-1, so that their total is exact in JSON.
func (r Report) Sessions() (successful, failed int64) {
	for i := range r.Policies {
		successful = addCount(successful, r.Policies[i].Successful)
		failed = addCount(failed, r.Policies[i].Failed)
	}
	return successful, failed
}

// Key says which report of which reporter this is. Two reports of one key are two
// versions of one report. It is comparable.
type Key struct {
	// Organization is in lower case.
	Organization string
	// ReportID is without the angle brackets that some reporters put around it.
	ReportID string
	// Domain is the policy domain. Where the policies name several, it is the first
	// of them in alphabetical order, so that the order of policies does not matter.
	Domain     string
	Begin, End int64
}

// Key returns the identity of the report.
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
