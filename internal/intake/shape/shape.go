// Package shape makes the JSON shapes of package wire from what was read. The command
// line prints them, and what is kept of a report is one of them. Records of aggregate
// reports have a shape of their own, because there may be a million of them; listing
// them is left to the caller.
package shape

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// Document returns all that a report says but its records, as JSON in one line. It is
// what dmarcd.Report.Document holds.
func Document(item *intake.Item) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(Report("", item)); err != nil {
		// The shapes hold texts, numbers and lists of them, which can all be written.
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Report returns the shape of a report of any kind, found in a file. It is a
// wire.AggregateReport, wire.FailureReport or wire.TLSReport. The item is not a refused
// one.
func Report(file string, item *intake.Item) any {
	switch {
	case item.Aggregate != nil:
		return aggregateReport(file, item)
	case item.Failure != nil:
		return failureReport(file, item)
	default:
		return tlsReport(file, item)
	}
}

// orNull makes null of what a report does not state.
func orNull[T ~string](value T) *string {
	if value == "" {
		return nil
	}
	text := string(value)
	return &text
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// convert maps a slice, and makes an empty one of nil: JSON lists are never null.
func convert[A, B any](list []A, f func(A) B) []B {
	converted := make([]B, len(list))
	for i, a := range list {
		converted[i] = f(a)
	}
	return converted
}

// texts makes a list that is never null.
func texts[T ~string](list []T) []string {
	return convert(list, func(value T) string { return string(value) })
}

func found(file string, item *intake.Item) wire.Found {
	found := wire.Found{File: file, Member: item.Path, Kind: item.Kind.String(), Quirks: Quirks(item)}
	if item.Damage != nil {
		found.Damage = orNull(item.Damage.Error())
	}
	return found
}

// Quirks returns the quirks of a report of any kind, with what they mean.
func Quirks(item *intake.Item) []wire.Quirk {
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

func aggregateReport(file string, item *intake.Item) wire.AggregateReport {
	a := item.Aggregate
	r, m, p := a.Report, a.Report.Metadata, a.Report.Policy
	return wire.AggregateReport{
		Found:    found(file, item),
		XMLBytes: a.Bytes, XMLNamespace: orNull(r.Namespace), Version: orNull(r.Version), Flavour: string(r.Dialect),
		OrgName: orNull(m.OrgName), Email: orNull(m.Email), ExtraContact: orNull(m.ExtraContact), ReportID: orNull(m.ReportID),
		Begin: m.Begin, End: m.End, SpanSeconds: m.End - m.Begin, Errors: texts(m.Errors), Generator: orNull(m.Generator),
		Domain: p.Domain, P: orNull(p.P), SP: orNull(p.SP), NP: orNull(p.NP), ADKIM: orNull(p.ADKIM), ASPF: orNull(p.ASPF),
		Percent: orNull(p.Percent), FailureOptions: orNull(p.FailureOptions), Testing: orNull(p.Testing),
		DiscoveryMethod: orNull(p.DiscoveryMethod), PSD: orNull(p.PSD),
		Records: r.Records, Messages: a.Messages, Compliant: a.Compliant, Sources: a.Sources,
	}
}

// Record returns the shape of a record of an aggregate report.
func Record(r aggregate.Record) wire.AggregateRecord {
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

func failureReport(file string, item *intake.Item) wire.FailureReport {
	r := item.Failure
	shape := wire.FailureReport{
		Found:        found(file, item),
		TextOnly:     slices.Contains(r.Quirks, failure.TextOnly),
		FeedbackType: orNull(r.FeedbackType), Version: orNull(r.Version), UserAgent: orNull(r.UserAgent),
		AuthFailure: orNull(r.AuthFailure), AuthenticationResults: orNull(strings.Join(r.AuthenticationResults, "; ")),
		ReportedDomain: orNull(r.ReportedDomain), ReportingMTA: orNull(r.ReportingMTA), SourceIP: orNull(Source(r)),
		DeliveryResult: orNull(r.DeliveryResult), Incidents: r.Incidents,
		DKIMDomain: orNull(r.DKIMDomain), DKIMIdentity: orNull(r.DKIMIdentity), DKIMSelector: orNull(r.DKIMSelector),
		SPFDNS: texts(r.SPFDNS), OriginalMailFrom: orNull(r.OriginalMailFrom), OriginalRcptTo: texts(r.OriginalRcptTo),
		MessageID: orNull(r.MessageID), From: orNull(r.From),
	}
	if r.Body != "" { // the operator asked for it
		shape.Header, shape.Body = r.Header, r.Body
	}
	if !r.ArrivalDate.IsZero() {
		shape.Date = orNull(wire.Time(r.ArrivalDate))
	}
	if !slices.Contains(r.Quirks, failure.ArrivalDateMissing) {
		shape.ArrivalDate = shape.Date
	}
	if r.AlignmentTold {
		shape.IdentityAlignment = orNull(Misaligned(r))
		shape.DKIMAligned = orNull(yesNo(!slices.Contains(r.Misaligned, "dkim")))
		shape.SPFAligned = orNull(yesNo(!slices.Contains(r.Misaligned, "spf")))
	}
	return shape
}

// Source returns who delivered the mail that a failure report is about: an address, or
// what stands in its place.
func Source(r *failure.Report) string {
	if r.SourceIP.IsValid() {
		return r.SourceIP.String()
	}
	return r.SourceText
}

// Misaligned returns the mechanisms that gave no aligned identifier as RFC 9991
// writes them.
func Misaligned(r *failure.Report) string {
	if len(r.Misaligned) == 0 {
		return "none"
	}
	return strings.Join(r.Misaligned, ", ")
}

func tlsReport(file string, item *intake.Item) wire.TLSReport {
	r := item.TLS
	shape := wire.TLSReport{
		Found:            found(file, item),
		OrganizationName: orNull(r.OrgName), ContactInfo: orNull(r.ContactInfo), ReportID: orNull(r.ReportID),
		Policies: convert(r.Policies, tlsPolicy),
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

func tlsPolicy(p tlsrpt.Policy) wire.TLSPolicy {
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
