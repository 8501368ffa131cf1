package main

import (
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// orNull makes null of what a report does not state.
func orNull[T ~string](value T) *string {
	if value == "" {
		return nil
	}
	text := string(value)
	return &text
}

// texts makes a list that is never null.
func texts[T ~string](list []T) []string {
	return convert(list, func(value T) string { return string(value) })
}

func foundShape(file string, item *intake.Item) wire.Found {
	found := wire.Found{File: file, Member: item.Path, Kind: item.Kind.String(), Quirks: quirksOf(item)}
	if item.Damage != nil {
		found.Damage = orNull(item.Damage.Error())
	}
	return found
}

// quirksOf returns the quirks of a report of any kind.
func quirksOf(item *intake.Item) []wire.Quirk {
	switch {
	case item.Aggregate != nil:
		return convert(item.Aggregate.Report.Quirks, func(q aggregate.QuirkCount) wire.Quirk {
			return wire.Quirk{Quirk: q.Quirk.String(), Count: q.Count, Meaning: q.Quirk.Meaning()}
		})
	case item.Failure != nil:
		return convert(item.Failure.Quirks, func(q failure.Quirk) wire.Quirk {
			return wire.Quirk{Quirk: q.String(), Count: 1, Meaning: q.Meaning()}
		})
	default:
		return convert(item.TLS.Quirks, func(q tlsrpt.QuirkCount) wire.Quirk {
			return wire.Quirk{Quirk: q.Quirk.String(), Count: q.Count, Meaning: q.Quirk.Meaning()}
		})
	}
}

func aggregateShape(file string, item *intake.Item) wire.AggregateReport {
	a := item.Aggregate
	r, m, p := a.Report, a.Report.Metadata, a.Report.Policy
	return wire.AggregateReport{
		Found:    foundShape(file, item),
		XMLBytes: a.Bytes, XMLNamespace: orNull(r.Namespace), Version: orNull(r.Version), Flavour: string(r.Dialect),
		OrgName: orNull(m.OrgName), Email: orNull(m.Email), ExtraContact: orNull(m.ExtraContact), ReportID: orNull(m.ReportID),
		Begin: m.Begin, End: m.End, SpanSeconds: m.End - m.Begin, Errors: texts(m.Errors), Generator: orNull(m.Generator),
		Domain: p.Domain, P: orNull(p.P), SP: orNull(p.SP), NP: orNull(p.NP), ADKIM: orNull(p.ADKIM), ASPF: orNull(p.ASPF),
		Percent: orNull(p.Percent), FailureOptions: orNull(p.FailureOptions), Testing: orNull(p.Testing),
		DiscoveryMethod: orNull(p.DiscoveryMethod), PSD: orNull(p.PSD),
		Records: r.Records, Messages: a.Messages, Compliant: a.Compliant, Sources: a.Sources,
	}
}

func recordShape(r aggregate.Record) wire.AggregateRecord {
	return wire.AggregateRecord{
		SourceIP: r.Source, Count: r.Count, Compliant: r.Compliant(),
		Disposition: string(r.Disposition), DKIM: string(r.DKIM), SPF: string(r.SPF),
		Reasons:    convert(r.Reasons, func(reason aggregate.Reason) wire.AggregateReason { return wire.AggregateReason(reason) }),
		HeaderFrom: r.HeaderFrom, EnvelopeFrom: r.EnvelopeFrom, EnvelopeTo: r.EnvelopeTo,
		DKIMResults: convert(r.DKIMResults, func(d aggregate.DKIMResult) wire.DKIMResult {
			return wire.DKIMResult{Domain: d.Domain, Selector: d.Selector, Result: string(d.Result), HumanResult: d.HumanResult}
		}),
		SPFResults: convert(r.SPFResults, func(s aggregate.SPFResult) wire.SPFResult {
			return wire.SPFResult{Domain: s.Domain, Scope: s.Scope, Result: string(s.Result), HumanResult: s.HumanResult}
		}),
		Disagrees: r.Disagrees,
	}
}

func failureShape(file string, item *intake.Item) wire.FailureReport {
	r := item.Failure
	shape := wire.FailureReport{
		Found:        foundShape(file, item),
		TextOnly:     slices.Contains(r.Quirks, failure.TextOnly),
		FeedbackType: orNull(r.FeedbackType), Version: orNull(r.Version), UserAgent: orNull(r.UserAgent),
		AuthFailure: orNull(r.AuthFailure), AuthenticationResults: orNull(strings.Join(r.AuthenticationResults, "; ")),
		ReportedDomain: orNull(r.ReportedDomain), ReportingMTA: orNull(r.ReportingMTA), SourceIP: orNull(failureSource(r)),
		DeliveryResult: orNull(r.DeliveryResult), Incidents: r.Incidents,
		DKIMDomain: orNull(r.DKIMDomain), DKIMIdentity: orNull(r.DKIMIdentity), DKIMSelector: orNull(r.DKIMSelector),
		SPFDNS: texts(r.SPFDNS), OriginalMailFrom: orNull(r.OriginalMailFrom), OriginalRcptTo: texts(r.OriginalRcptTo),
		MessageID: orNull(r.MessageID), From: orNull(r.From),
	}
	if !r.ArrivalDate.IsZero() {
		shape.Date = orNull(wire.Time(r.ArrivalDate))
	}
	if !slices.Contains(r.Quirks, failure.ArrivalDateMissing) {
		shape.ArrivalDate = shape.Date
	}
	if r.AlignmentTold {
		shape.IdentityAlignment = orNull(misaligned(r))
		shape.DKIMAligned = orNull(yesNo(!slices.Contains(r.Misaligned, "dkim")))
		shape.SPFAligned = orNull(yesNo(!slices.Contains(r.Misaligned, "spf")))
	}
	return shape
}

// failureSource returns who delivered the mail: an address, or what stands in its
// place.
func failureSource(r *failure.Report) string {
	if r.SourceIP.IsValid() {
		return r.SourceIP.String()
	}
	return r.SourceText
}

// misaligned returns the mechanisms that gave no aligned identifier as RFC 9991
// writes them.
func misaligned(r *failure.Report) string {
	if len(r.Misaligned) == 0 {
		return "none"
	}
	return strings.Join(r.Misaligned, ", ")
}

func tlsShape(file string, item *intake.Item) wire.TLSReport {
	r := item.TLS
	shape := wire.TLSReport{
		Found:            foundShape(file, item),
		OrganizationName: orNull(r.OrgName), ContactInfo: orNull(r.ContactInfo), ReportID: orNull(r.ReportID),
		Policies: convert(r.Policies, tlsPolicyShape),
	}
	if r.Begin != 0 || r.End != 0 {
		shape.Start = orNull(wire.Time(time.Unix(r.Begin, 0)))
		shape.End = orNull(wire.Time(time.Unix(r.End, 0)))
	}
	shape.Successful, shape.Failed = r.Sessions()
	for _, p := range r.Policies {
		shape.FailureDetails += len(p.Failures)
	}
	return shape
}

func tlsPolicyShape(p tlsrpt.Policy) wire.TLSPolicy {
	return wire.TLSPolicy{
		Type: string(p.Type), Domain: p.Domain, Strings: texts(p.Strings), MXHosts: texts(p.MXHosts),
		Successful: p.Successful, Failed: p.Failed, Details: len(p.Failures),
		ResultTypes: convert(p.Failures, func(f tlsrpt.Failure) string { return string(f.ResultType) }),
		DetailList: convert(p.Failures, func(f tlsrpt.Failure) wire.TLSFailure {
			return wire.TLSFailure{
				ResultType: string(f.ResultType), FailedSessions: f.FailedSessions, SendingMTAIP: f.SendingMTAIP,
				ReceivingMXHostname: f.ReceivingMXHostname, ReceivingMXHelo: f.ReceivingMXHelo, ReceivingIP: f.ReceivingIP,
				AdditionalInformation: f.AdditionalInformation, ReasonCode: f.ReasonCode,
			}
		}),
	}
}
