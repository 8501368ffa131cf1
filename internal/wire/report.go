package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Found is the location of a report in a file.
type Found struct {
	File string `json:"file,omitempty"` // not in the API
	// Member is the location in the file, null for the file itself.
	Member Text `json:"member"`
	// Kind is "aggregate", "failure" or "tls".
	Kind string `json:"kind"`
	// Damage describes a damaged container that could be read in part, null if it is intact.
	Damage *string `json:"damage"`
	// Quirks are deviations from the specification.
	Quirks []Quirk `json:"quirks"`
}

// Quirk is one kind of deviation.
type Quirk struct {
	Quirk   string `json:"quirk"`
	Count   int    `json:"count"`
	Meaning string `json:"meaning"`
}

// AggregateReport is an aggregate report without its records, which follow as the member
// "record_list". Missing values are null.
type AggregateReport struct {
	Found
	XMLBytes     int64    `json:"xml_bytes"`
	XMLNamespace *string  `json:"xml_namespace"`
	Version      *string  `json:"version"`
	Flavour      string   `json:"schema_flavour"` // "draft", "7489" or "9990"
	OrgName      *string  `json:"org_name"`
	Email        *string  `json:"email"`
	ExtraContact *string  `json:"extra_contact_info"`
	ReportID     *string  `json:"report_id"`
	Begin        int64    `json:"begin"` // seconds since 1970
	End          int64    `json:"end"`
	SpanSeconds  int64    `json:"span_seconds"`
	Errors       []string `json:"errors"`
	Generator    *string  `json:"generator"`

	Domain          string  `json:"domain"`
	P               *string `json:"p"`
	SP              *string `json:"pp_sp"`
	NP              *string `json:"pp_np"`
	ADKIM           *string `json:"pp_adkim"`
	ASPF            *string `json:"pp_aspf"`
	Percent         *string `json:"pp_pct"`
	FailureOptions  *string `json:"pp_fo"`
	Testing         *string `json:"pp_testing"`
	DiscoveryMethod *string `json:"pp_discovery_method"`
	PSD             *string `json:"pp_psd"`

	Records   int   `json:"records"` // how many there are
	Messages  int64 `json:"sum_count"`
	Compliant int64 `json:"dmarc_compliant_count"`
	Sources   int   `json:"distinct_source_ips"`
}

// AggregateRecord is a record of an aggregate report. Missing texts are null.
type AggregateRecord struct {
	SourceIP     string `json:"source_ip" parquet:"source_ip,dict"`
	Count        int64  `json:"count" parquet:"count"`
	Compliant    bool   `json:"compliant" parquet:"compliant"`
	Disposition  Text   `json:"disposition" parquet:"disposition,optional,dict"`
	DKIM         Text   `json:"dkim" parquet:"dkim,optional,dict"`
	SPF          Text   `json:"spf" parquet:"spf,optional,dict"`
	HeaderFrom   Text   `json:"header_from" parquet:"header_from,optional,dict"`
	EnvelopeFrom Text   `json:"envelope_from" parquet:"envelope_from,optional,dict"`
	EnvelopeTo   Text   `json:"envelope_to" parquet:"envelope_to,optional,dict"`
	// Disagrees means that the results contradict the receiver's evaluation.
	Disagrees   bool              `json:"disagrees" parquet:"disagrees"`
	Reasons     []AggregateReason `json:"reasons" parquet:"reasons,list"`
	DKIMResults []DKIMResult      `json:"dkim_results" parquet:"dkim_results,list"`
	SPFResults  []SPFResult       `json:"spf_results" parquet:"spf_results,list"`
}

// AggregateReason is why a receiver overrode the policy.
type AggregateReason struct {
	Type    Text `json:"type" parquet:"type,optional,dict"`
	Comment Text `json:"comment" parquet:"comment,optional,dict"`
}

// DKIMResult is the result of one signature.
type DKIMResult struct {
	Domain      Text `json:"domain" parquet:"domain,optional,dict"`
	Selector    Text `json:"selector" parquet:"selector,optional,dict"`
	Result      Text `json:"result" parquet:"result,optional,dict"`
	HumanResult Text `json:"human_result" parquet:"human_result,optional,dict"`
}

// SPFResult is the result of one SPF check.
type SPFResult struct {
	Domain      Text `json:"domain" parquet:"domain,optional,dict"`
	Scope       Text `json:"scope" parquet:"scope,optional,dict"`
	Result      Text `json:"result" parquet:"result,optional,dict"`
	HumanResult Text `json:"human_result" parquet:"human_result,optional,dict"`
}

// FailureReport is a failure report without local parts of addresses. Missing values are null.
type FailureReport struct {
	Found
	TextOnly              bool     `json:"text_only"`
	FeedbackType          *string  `json:"feedback_type"`
	Version               *string  `json:"version"`
	UserAgent             *string  `json:"user_agent"`
	AuthFailure           *string  `json:"auth_failure"`
	AuthenticationResults *string  `json:"authentication_results"`
	IdentityAlignment     *string  `json:"identity_alignment"`
	DKIMAligned           *string  `json:"dkim_aligned"` // "yes" or "no"
	SPFAligned            *string  `json:"spf_aligned"`
	ReportedDomain        *string  `json:"reported_domain"`
	ReportingMTA          *string  `json:"reporting_mta"`
	SourceIP              *string  `json:"source_ip"`
	ArrivalDate           *string  `json:"arrival_date"`
	Date                  *string  `json:"date"` // of arrival, else of the report
	DeliveryResult        *string  `json:"delivery_result"`
	Incidents             int      `json:"incidents"`
	DKIMDomain            *string  `json:"dkim_domain"`
	DKIMIdentity          *string  `json:"dkim_identity"`
	DKIMSelector          *string  `json:"dkim_selector"`
	SPFDNS                []string `json:"spf_dns"`
	OriginalMailFrom      *string  `json:"original_mail_from"`
	OriginalRcptTo        []string `json:"original_rcpt_to"`
	MessageID             *string  `json:"message_id"`
	From                  *string  `json:"from"`
}

// TLSReport is a TLS report. Missing values are null.
type TLSReport struct {
	Found
	OrganizationName *string     `json:"organization_name"`
	ContactInfo      *string     `json:"contact_info"`
	ReportID         *string     `json:"report_id"`
	Start            *string     `json:"start"`
	End              *string     `json:"end"`
	Successful       int64       `json:"total_success"`
	Failed           int64       `json:"total_failure"`
	FailureDetails   int         `json:"failure_details"` // how many there are
	Policies         []TLSPolicy `json:"policies"`
}

// TLSPolicy is a policy of a TLS report. Missing texts are null.
type TLSPolicy struct {
	Type        Text         `json:"type"`
	Domain      Text         `json:"domain"`
	Strings     []string     `json:"policy_strings"`
	MXHosts     []string     `json:"mx_hosts"`
	Successful  int64        `json:"success"`
	Failed      int64        `json:"failure"`
	Details     int          `json:"details"` // how many there are
	ResultTypes []string     `json:"result_types"`
	DetailList  []TLSFailure `json:"detail_list"`
}

// TLSFailure is a group of sessions that failed in the same way.
type TLSFailure struct {
	ResultType            Text  `json:"result_type"`
	FailedSessions        int64 `json:"failed_sessions"`
	SendingMTAIP          Text  `json:"sending_mta_ip"`
	ReceivingMXHostname   Text  `json:"receiving_mx_hostname"`
	ReceivingMXHelo       Text  `json:"receiving_mx_helo"`
	ReceivingIP           Text  `json:"receiving_ip"`
	AdditionalInformation Text  `json:"additional_information"`
	ReasonCode            Text  `json:"failure_reason_code"`
}

// NewReport returns the shape of a report in a file without its records: an AggregateReport,
// FailureReport or TLSReport. It returns nil if the details have expired.
func NewReport(file string, r dmarcd.Report) any {
	found := Found{File: file, Member: Text(r.Member), Kind: string(r.Kind), Damage: optionalText(r.Damage), Quirks: NewQuirks(r)}
	switch {
	case r.Detail.Aggregate != nil:
		return newAggregateReport(found, r)
	case r.Detail.Failure != nil:
		return newFailureReport(found, r)
	case r.Detail.TLS != nil:
		return newTLSReport(found, r.Detail.TLS)
	default:
		return nil
	}
}

// NewQuirks returns the shapes of the quirks of a report, with their meanings.
func NewQuirks(r dmarcd.Report) []Quirk {
	return list(r.Quirks, func(q dmarcd.Quirk) Quirk {
		return Quirk{Quirk: q.Name, Count: q.Count, Meaning: meaning(r.Kind, q.Name)}
	})
}

// meaning describes a quirk, "" for an unknown one.
func meaning(kind dmarcd.ReportKind, name string) string {
	if name == dmarcd.QuirkCut {
		return fmt.Sprintf("A name, an address or an id is longer than %d bytes; the rest was cut.", dmarcd.MaxKeyText)
	}
	switch kind {
	case dmarcd.KindAggregate:
		return meaningIn(aggregate.Quirks(), name)
	case dmarcd.KindFailure:
		return meaningIn(failure.Quirks(), name)
	default:
		return meaningIn(tlsrpt.Quirks(), name)
	}
}

func meaningIn[Q interface {
	String() string
	Meaning() string
}](all []Q, name string) string {
	for _, q := range all {
		if q.String() == name {
			return q.Meaning()
		}
	}
	return ""
}

func newAggregateReport(found Found, report dmarcd.Report) AggregateReport {
	d := report.Detail.Aggregate
	r, m, p := d.Report, d.Report.Metadata, d.Report.Policy
	return AggregateReport{
		Found:    found,
		XMLBytes: d.Bytes, XMLNamespace: optionalText(r.Namespace), Version: optionalText(r.Version), Flavour: string(r.Dialect),
		OrgName: optionalText(m.OrgName), Email: optionalText(m.Email), ExtraContact: optionalText(m.ExtraContact),
		ReportID: optionalText(m.ReportID), Begin: m.Begin, End: m.End, SpanSeconds: m.End - m.Begin, Errors: notNull(m.Errors),
		Generator: optionalText(m.Generator),
		Domain:    p.Domain, P: optionalText(p.P), SP: optionalText(p.SP), NP: optionalText(p.NP),
		ADKIM: optionalText(p.ADKIM), ASPF: optionalText(p.ASPF), Percent: optionalText(p.Percent),
		FailureOptions: optionalText(p.FailureOptions), Testing: optionalText(p.Testing),
		DiscoveryMethod: optionalText(p.DiscoveryMethod), PSD: optionalText(p.PSD),
		Records: report.Records, Messages: report.Messages, Compliant: report.Compliant, Sources: d.Sources,
	}
}

// NewAggregateRecord returns the shape of a record of an aggregate report.
func NewAggregateRecord(r aggregate.Record) AggregateRecord {
	return AggregateRecord{
		SourceIP: r.Source, Count: r.Count, Compliant: r.Compliant(),
		Disposition: Text(r.Disposition), DKIM: Text(r.DKIM), SPF: Text(r.SPF),
		Reasons: list(r.Reasons, func(reason aggregate.Reason) AggregateReason {
			return AggregateReason{Type: Text(reason.Type), Comment: Text(reason.Comment)}
		}),
		HeaderFrom: Text(r.HeaderFrom), EnvelopeFrom: Text(r.EnvelopeFrom), EnvelopeTo: Text(r.EnvelopeTo),
		DKIMResults: list(r.DKIMResults, func(d aggregate.DKIMResult) DKIMResult {
			return DKIMResult{Domain: Text(d.Domain), Selector: Text(d.Selector), Result: Text(d.Result), HumanResult: Text(d.HumanResult)}
		}),
		SPFResults: list(r.SPFResults, func(s aggregate.SPFResult) SPFResult {
			return SPFResult{Domain: Text(s.Domain), Scope: Text(s.Scope), Result: Text(s.Result), HumanResult: Text(s.HumanResult)}
		}),
		Disagrees: r.Disagrees,
	}
}

func newFailureReport(found Found, report dmarcd.Report) FailureReport {
	r := report.Detail.Failure
	has := func(quirk failure.Quirk) bool {
		return slices.ContainsFunc(report.Quirks, func(q dmarcd.Quirk) bool { return q.Name == quirk.String() })
	}
	shape := FailureReport{
		Found: found, TextOnly: has(failure.TextOnly),
		FeedbackType: optionalText(r.FeedbackType), Version: optionalText(r.Version), UserAgent: optionalText(r.UserAgent),
		AuthFailure: optionalText(r.AuthFailure), AuthenticationResults: optionalText(strings.Join(r.AuthenticationResults, "; ")),
		ReportedDomain: optionalText(r.ReportedDomain), ReportingMTA: optionalText(r.ReportingMTA), SourceIP: optionalText(r.Source()),
		DeliveryResult: optionalText(r.DeliveryResult), Incidents: r.Incidents,
		DKIMDomain: optionalText(r.DKIMDomain), DKIMIdentity: optionalText(r.DKIMIdentity), DKIMSelector: optionalText(r.DKIMSelector),
		SPFDNS: notNull(r.SPFDNS), OriginalMailFrom: optionalText(r.OriginalMailFrom), OriginalRcptTo: notNull(r.OriginalRcptTo),
		MessageID: optionalText(r.MessageID), From: optionalText(r.From),
	}
	shape.Date = optionalTime(r.ArrivalDate)
	if !has(failure.ArrivalDateMissing) {
		shape.ArrivalDate = shape.Date
	}
	if r.AlignmentReported {
		shape.IdentityAlignment = optionalText(r.IdentityAlignment())
		shape.DKIMAligned = optionalText(yesNo(!slices.Contains(r.Misaligned, "dkim")))
		shape.SPFAligned = optionalText(yesNo(!slices.Contains(r.Misaligned, "spf")))
	}
	return shape
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func newTLSReport(found Found, r *tlsrpt.Report) TLSReport {
	shape := TLSReport{
		Found:            found,
		OrganizationName: optionalText(r.OrgName), ContactInfo: optionalText(r.ContactInfo), ReportID: optionalText(r.ReportID),
		Policies: list(r.Policies, newTLSPolicy),
	}
	if r.Begin != 0 || r.End != 0 {
		begin, end := Time(time.Unix(r.Begin, 0)), Time(time.Unix(r.End, 0))
		shape.Start, shape.End = &begin, &end
	}
	shape.Successful, shape.Failed = r.Sessions()
	for _, p := range r.Policies {
		shape.FailureDetails += len(p.Failures)
	}
	return shape
}

func newTLSPolicy(p tlsrpt.Policy) TLSPolicy {
	return TLSPolicy{
		Type: Text(p.Type), Domain: Text(p.Domain), Strings: notNull(p.Strings), MXHosts: notNull(p.MXHosts),
		Successful: p.Successful, Failed: p.Failed, Details: len(p.Failures),
		ResultTypes: list(p.Failures, func(f tlsrpt.Failure) string { return string(f.ResultType) }),
		DetailList: list(p.Failures, func(f tlsrpt.Failure) TLSFailure {
			return TLSFailure{
				ResultType: Text(f.ResultType), FailedSessions: f.FailedSessions, SendingMTAIP: Text(f.SendingMTAIP),
				ReceivingMXHostname: Text(f.ReceivingMXHostname), ReceivingMXHelo: Text(f.ReceivingMXHelo), ReceivingIP: Text(f.ReceivingIP),
				AdditionalInformation: Text(f.AdditionalInformation), ReasonCode: Text(f.ReasonCode),
			}
		}),
	}
}
