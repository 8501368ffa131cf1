package intake

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake/unpack"
	"github.com/dmarcd/dmarcd/internal/reporttext"
)

// reportKind returns the kind of report, "" if unknown.
func reportKind(kind unpack.Kind) dmarcd.ReportKind {
	switch kind {
	case unpack.Aggregate:
		return dmarcd.KindAggregate
	case unpack.Failure:
		return dmarcd.KindFailure
	case unpack.TLS:
		return dmarcd.KindTLS
	default:
		return ""
	}
}

// Report returns an accepted item in the form that is read back from the database.
func (item *Item) Report() dmarcd.Report {
	report := newReport(context.Background(), item).Report // without its records
	report.Detail = item.detail()
	return report
}

// detail returns the fields that only this kind of report has.
func (item *Item) detail() dmarcd.Detail {
	detail := dmarcd.Detail{Failure: item.Failure, TLS: item.TLS}
	if a := item.Aggregate; a != nil {
		detail.Aggregate = &dmarcd.AggregateDetail{Report: a.Report, Bytes: a.Bytes, Sources: a.Sources}
	}
	return detail
}

// newReport converts an accepted item for storage. Its records end with ctx.
func newReport(ctx context.Context, item *Item) dmarcd.NewReport {
	var report dmarcd.NewReport
	switch {
	case item.Aggregate != nil:
		report = newAggregateReport(ctx, item.Aggregate)
		report.Begin, report.End = period(item, item.Aggregate.Report.Metadata.Begin, item.Aggregate.Report.Metadata.End)
	case item.Failure != nil:
		report = newFailureReport(item)
		report.Begin, report.End = period(item, item.Failure.ArrivalDate.Unix(), item.Failure.ArrivalDate.Unix())
	default:
		report = newTLSReport(item)
		report.Begin, report.End = period(item, item.TLS.Begin, item.TLS.End)
	}
	report.Kind = reportKind(item.Kind)
	report.Member = item.Path
	if item.Damage != nil {
		report.Damage = plain(item.Damage.Error())
	}
	return report
}

func newAggregateReport(ctx context.Context, a *Aggregate) dmarcd.NewReport {
	m, key := a.Report.Metadata, a.Report.Key()
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: plain(m.Organization()),
			ExternalID:   plain(m.ReportID),
			Domain:       plain(a.Report.Policy.Domain),
			Records:      a.Report.Records,
			Messages:     a.Messages,
			Compliant:    a.Compliant,
			HeldReason:   dmarcd.Implausible(a.Largest, a.Messages),
		},
		Key:        keyOf(dmarcd.KindAggregate, key.Organization, key.ReportID, key.Domain, key.Begin, key.End),
		Content:    a.Report.Content,
		Contact:    plain(m.Email),
		Shares:     a.shares,
		TextBytes:  a.textBytes,
		EachRecord: storable(func() iter.Seq2[aggregate.Record, error] { return a.Records(ctx) }),
	}
	for _, q := range a.Report.Quirks {
		report.Quirks = append(report.Quirks, dmarcd.Quirk{Name: q.Quirk.String(), Count: q.Count})
	}
	return report
}

// storable yields the records with texts that can be indexed. Each iteration reads them again.
func storable(records func() iter.Seq2[aggregate.Record, error]) iter.Seq2[aggregate.Record, error] {
	return func(yield func(aggregate.Record, error) bool) {
		for record, err := range records() {
			record.HeaderFrom = shorten(record.HeaderFrom)
			record.Source = shorten(record.Source)
			record.EnvelopeFrom, record.EnvelopeTo = shorten(record.EnvelopeFrom), shorten(record.EnvelopeTo)
			if !yield(record, err) {
				return
			}
		}
	}
}

// newFailureReport uses one hash as key and content: a failure report has no id, so it is
// never a version of another one.
func newFailureReport(item *Item) dmarcd.NewReport {
	r := item.Failure
	domain := plain(r.ReportedDomain)
	incidents := int64(r.Incidents)
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: plain(r.ReportingMTA),
			ExternalID:   plain(r.MessageID),
			Domain:       domain,
			Records:      1,
			Messages:     incidents,
			HeldReason:   dmarcd.Implausible(incidents, incidents),
		},
		Key:     item.sameness,
		Content: item.sameness,
		Shares:  []dmarcd.Share{{From: domain, Records: 1}},
	}
	for _, q := range r.Quirks {
		report.Quirks = append(report.Quirks, dmarcd.Quirk{Name: q.String(), Count: 1})
	}
	return report
}

func newTLSReport(item *Item) dmarcd.NewReport {
	r := item.TLS
	key := r.Key()
	successful, failed := r.Sessions()
	largest := int64(0)
	for i := range r.Policies {
		largest = max(largest, r.Policies[i].Successful, r.Policies[i].Failed)
	}
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: plain(r.Organization()),
			ExternalID:   plain(r.ReportID),
			Domain:       plain(key.Domain),
			Records:      len(r.Policies),
			Messages:     successful + failed,
			Compliant:    successful,
			HeldReason:   dmarcd.Implausible(largest, successful+failed),
		},
		Key:     keyOf(dmarcd.KindTLS, key.Organization, key.ReportID, key.Domain, key.Begin, key.End),
		Content: r.Content,
		Contact: plain(r.ContactInfo),
	}
	at := make(map[string]int)
	for i := range r.Policies {
		domain := plain(r.Policies[i].Domain)
		if _, known := at[domain]; !known {
			at[domain] = len(report.Shares)
			report.Shares = append(report.Shares, dmarcd.Share{From: domain})
		}
		report.Shares[at[domain]].Records++
	}
	if len(report.Shares) == 0 {
		report.Shares = []dmarcd.Share{{}}
	}
	for _, q := range r.Quirks {
		report.Quirks = append(report.Quirks, dmarcd.Quirk{Name: q.Quirk.String(), Count: q.Count})
	}
	return report
}

// period converts the period of a report from seconds since 1970. It is zero if the begin is
// missing or implausible; the report then counts on the day it was received. An implausible end
// is the begin: retention deletes a report by its end.
func period(item *Item, begin, end int64) (from, to time.Time) {
	if !reporttext.Plausible(begin, item.latest) {
		return time.Time{}, time.Time{}
	}
	if end < begin || !reporttext.Plausible(end, item.latest) {
		end = begin
	}
	return time.Unix(begin, 0).UTC(), time.Unix(end, 0).UTC()
}

// maxText limits searchable texts, in bytes. Databases cannot index much longer ones.
const maxText = 500

// plain returns text as valid UTF-8, without control characters and limited to maxText.
func plain(text string) string {
	return shorten(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError))))
}

// shorten cuts text to maxText at a rune boundary.
func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
