package shape

import (
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// aggregateV1 is an aggregate report without its records. Missing elements are omitted, and so are
// the columns of the report: its counts, its quirks and where it was found.
type aggregateV1 struct {
	V            int      `json:"v"`
	Bytes        int64    `json:"bytes,omitempty"`
	Sources      int      `json:"sources,omitempty"`
	Namespace    string   `json:"namespace,omitempty"`
	Version      string   `json:"version,omitempty"`
	Dialect      string   `json:"dialect,omitempty"`
	OrgName      string   `json:"org_name,omitempty"`
	Email        string   `json:"email,omitempty"`
	ExtraContact string   `json:"extra_contact,omitempty"`
	ReportID     string   `json:"report_id,omitempty"`
	Begin        int64    `json:"begin,omitempty"` // seconds since 1970
	End          int64    `json:"end,omitempty"`
	Errors       []string `json:"errors,omitempty"`
	Generator    string   `json:"generator,omitempty"`
	Policy       policyV1 `json:"policy"`
}

type policyV1 struct {
	Domain          string `json:"domain,omitempty"`
	P               string `json:"p,omitempty"`
	SP              string `json:"sp,omitempty"`
	NP              string `json:"np,omitempty"`
	ADKIM           string `json:"adkim,omitempty"`
	ASPF            string `json:"aspf,omitempty"`
	Percent         string `json:"pct,omitempty"`
	FailureOptions  string `json:"fo,omitempty"`
	Testing         string `json:"t,omitempty"`
	DiscoveryMethod string `json:"discovery,omitempty"`
	PSD             string `json:"psd,omitempty"`
}

// failureV1 is a failure report, with the failed mail only if the operator enabled that.
type failureV1 struct {
	V                     int      `json:"v"`
	FeedbackType          string   `json:"feedback_type,omitempty"`
	UserAgent             string   `json:"user_agent,omitempty"`
	Version               string   `json:"version,omitempty"`
	AuthFailure           string   `json:"auth_failure,omitempty"`
	AuthenticationResults []string `json:"authentication_results,omitempty"`
	Misaligned            []string `json:"misaligned,omitempty"`
	AlignmentReported     bool     `json:"alignment_reported,omitempty"`
	Source                string   `json:"source,omitempty"` // an address, or what stands in its place
	ReportedDomain        string   `json:"reported_domain,omitempty"`
	ReportingMTA          string   `json:"reporting_mta,omitempty"`
	ArrivedAt             int64    `json:"arrived_at,omitempty"` // seconds since 1970
	DeliveryResult        string   `json:"delivery_result,omitempty"`
	Incidents             int      `json:"incidents,omitempty"`
	DKIMDomain            string   `json:"dkim_domain,omitempty"`
	DKIMIdentity          string   `json:"dkim_identity,omitempty"`
	DKIMSelector          string   `json:"dkim_selector,omitempty"`
	SPFDNS                []string `json:"spf_dns,omitempty"`
	OriginalMailFrom      string   `json:"mail_from,omitempty"`
	OriginalRcptTo        []string `json:"rcpt_to,omitempty"`
	MessageID             string   `json:"message_id,omitempty"`
	From                  string   `json:"from,omitempty"`
}

// tlsV1 is a TLS report.
type tlsV1 struct {
	V           int           `json:"v"`
	OrgName     string        `json:"org_name,omitempty"`
	ContactInfo string        `json:"contact_info,omitempty"`
	ReportID    string        `json:"report_id,omitempty"`
	Begin       int64         `json:"begin,omitempty"` // seconds since 1970
	End         int64         `json:"end,omitempty"`
	Policies    []tlsPolicyV1 `json:"policies,omitempty"`
}

type tlsPolicyV1 struct {
	Type       string         `json:"type,omitempty"`
	Domain     string         `json:"domain,omitempty"`
	Strings    []string       `json:"strings,omitempty"`
	MXHosts    []string       `json:"mx_hosts,omitempty"`
	Successful int64          `json:"successful,omitempty"`
	Failed     int64          `json:"failed,omitempty"`
	Failures   []tlsFailureV1 `json:"failures,omitempty"`
}

type tlsFailureV1 struct {
	ResultType            string `json:"result,omitempty"`
	SendingMTAIP          string `json:"sending_ip,omitempty"`
	ReceivingMXHostname   string `json:"receiving_host,omitempty"`
	ReceivingMXHelo       string `json:"receiving_helo,omitempty"`
	ReceivingIP           string `json:"receiving_ip,omitempty"`
	FailedSessions        int64  `json:"sessions,omitempty"`
	AdditionalInformation string `json:"information,omitempty"`
	ReasonCode            string `json:"reason_code,omitempty"`
}

// EncodeDetail returns the document of a report of any kind.
func EncodeDetail(d dmarcd.Detail) string {
	switch {
	case d.Aggregate != nil:
		return encode(newAggregateV1(d.Aggregate))
	case d.Failure != nil:
		return encode(newFailureV1(d.Failure))
	case d.TLS != nil:
		return encode(newTLSV1(d.TLS))
	default:
		return ""
	}
}

// DecodeDetail reads what EncodeDetail of this or an earlier version returned for a report
// of that kind.
func DecodeDetail(kind dmarcd.ReportKind, document string) (dmarcd.Detail, error) {
	if document == "" {
		return dmarcd.Detail{}, nil
	}
	what := string(kind) + " report"
	switch kind {
	case dmarcd.KindFailure:
		return decode[failureV1](what, document)
	case dmarcd.KindTLS:
		return decode[tlsV1](what, document)
	default:
		return decode[aggregateV1](what, document)
	}
}

func newAggregateV1(d *dmarcd.AggregateDetail) aggregateV1 {
	r, m, p := d.Report, d.Report.Metadata, d.Report.Policy
	return aggregateV1{
		V: 1, Bytes: d.Bytes, Sources: d.Sources, Namespace: r.Namespace, Version: r.Version, Dialect: string(r.Dialect),
		OrgName: m.OrgName, Email: m.Email, ExtraContact: m.ExtraContact, ReportID: m.ReportID, Begin: m.Begin, End: m.End,
		Errors: m.Errors, Generator: m.Generator,
		Policy: policyV1{
			Domain: p.Domain, P: string(p.P), SP: string(p.SP), NP: string(p.NP), ADKIM: p.ADKIM, ASPF: p.ASPF, Percent: p.Percent,
			FailureOptions: p.FailureOptions, Testing: p.Testing, DiscoveryMethod: p.DiscoveryMethod, PSD: p.PSD,
		},
	}
}

func (s aggregateV1) value() dmarcd.Detail {
	p := s.Policy
	return dmarcd.Detail{Aggregate: &dmarcd.AggregateDetail{
		Bytes: s.Bytes, Sources: s.Sources,
		Report: aggregate.Report{
			Namespace: s.Namespace, Version: s.Version, Dialect: aggregate.Dialect(s.Dialect),
			Metadata: aggregate.Metadata{
				OrgName: s.OrgName, Email: s.Email, ExtraContact: s.ExtraContact, ReportID: s.ReportID, Begin: s.Begin, End: s.End,
				Errors: s.Errors, Generator: s.Generator,
			},
			Policy: aggregate.PublishedPolicy{
				Domain: p.Domain, P: aggregate.Policy(p.P), SP: aggregate.Policy(p.SP), NP: aggregate.Policy(p.NP),
				ADKIM: p.ADKIM, ASPF: p.ASPF, Percent: p.Percent, FailureOptions: p.FailureOptions, Testing: p.Testing,
				DiscoveryMethod: p.DiscoveryMethod, PSD: p.PSD,
			},
		},
	}}
}

func newFailureV1(r *failure.Report) failureV1 {
	s := failureV1{
		V: 1, FeedbackType: r.FeedbackType, UserAgent: r.UserAgent, Version: r.Version, AuthFailure: string(r.AuthFailure),
		AuthenticationResults: r.AuthenticationResults, Misaligned: r.Misaligned, AlignmentReported: r.AlignmentReported, Source: r.Source(),
		ReportedDomain: r.ReportedDomain, ReportingMTA: r.ReportingMTA, DeliveryResult: string(r.DeliveryResult), Incidents: r.Incidents,
		DKIMDomain: r.DKIMDomain, DKIMIdentity: r.DKIMIdentity, DKIMSelector: r.DKIMSelector, SPFDNS: r.SPFDNS,
		OriginalMailFrom: r.OriginalMailFrom, OriginalRcptTo: r.OriginalRcptTo, MessageID: r.MessageID, From: r.From,
	}
	if !r.ArrivalDate.IsZero() {
		s.ArrivedAt = r.ArrivalDate.Unix()
	}
	return s
}

func (s failureV1) value() dmarcd.Detail {
	r := &failure.Report{
		FeedbackType: s.FeedbackType, UserAgent: s.UserAgent, Version: s.Version, AuthFailure: failure.AuthFailure(s.AuthFailure),
		AuthenticationResults: s.AuthenticationResults, Misaligned: s.Misaligned, AlignmentReported: s.AlignmentReported,
		ReportedDomain: s.ReportedDomain, ReportingMTA: s.ReportingMTA, DeliveryResult: failure.DeliveryResult(s.DeliveryResult),
		Incidents: s.Incidents, DKIMDomain: s.DKIMDomain, DKIMIdentity: s.DKIMIdentity, DKIMSelector: s.DKIMSelector, SPFDNS: s.SPFDNS,
		OriginalMailFrom: s.OriginalMailFrom, OriginalRcptTo: s.OriginalRcptTo, MessageID: s.MessageID, From: s.From,
	}
	if address, err := netip.ParseAddr(s.Source); err == nil {
		r.SourceIP = address
	} else {
		r.SourceText = s.Source
	}
	if s.ArrivedAt != 0 {
		r.ArrivalDate = time.Unix(s.ArrivedAt, 0).UTC()
	}
	return dmarcd.Detail{Failure: r}
}

func newTLSV1(r *tlsrpt.Report) tlsV1 {
	return tlsV1{
		V: 1, OrgName: r.OrgName, ContactInfo: r.ContactInfo, ReportID: r.ReportID, Begin: r.Begin, End: r.End,
		Policies: convert(r.Policies, func(p tlsrpt.Policy) tlsPolicyV1 {
			return tlsPolicyV1{
				Type: string(p.Type), Domain: p.Domain, Strings: p.Strings, MXHosts: p.MXHosts, Successful: p.Successful, Failed: p.Failed,
				Failures: convert(p.Failures, func(f tlsrpt.Failure) tlsFailureV1 {
					return tlsFailureV1{
						ResultType: string(f.ResultType), SendingMTAIP: f.SendingMTAIP, ReceivingMXHostname: f.ReceivingMXHostname,
						ReceivingMXHelo: f.ReceivingMXHelo, ReceivingIP: f.ReceivingIP, FailedSessions: f.FailedSessions,
						AdditionalInformation: f.AdditionalInformation, ReasonCode: f.ReasonCode,
					}
				}),
			}
		}),
	}
}

func (s tlsV1) value() dmarcd.Detail {
	return dmarcd.Detail{TLS: &tlsrpt.Report{
		OrgName: s.OrgName, ContactInfo: s.ContactInfo, ReportID: s.ReportID, Begin: s.Begin, End: s.End,
		Policies: convert(s.Policies, func(p tlsPolicyV1) tlsrpt.Policy {
			return tlsrpt.Policy{
				Type: tlsrpt.PolicyType(p.Type), Domain: p.Domain, Strings: p.Strings, MXHosts: p.MXHosts,
				Successful: p.Successful, Failed: p.Failed,
				Failures: convert(p.Failures, func(f tlsFailureV1) tlsrpt.Failure {
					return tlsrpt.Failure{
						ResultType: tlsrpt.ResultType(f.ResultType), SendingMTAIP: f.SendingMTAIP, ReceivingMXHostname: f.ReceivingMXHostname,
						ReceivingMXHelo: f.ReceivingMXHelo, ReceivingIP: f.ReceivingIP, FailedSessions: f.FailedSessions,
						AdditionalInformation: f.AdditionalInformation, ReasonCode: f.ReasonCode,
					}
				}),
			}
		}),
	}}
}
