package intake

import (
	"context"
	"crypto/sha256"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/failure"
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
	var texts texts
	switch {
	case item.Aggregate != nil:
		report = newAggregateReport(ctx, item.Aggregate, &texts)
		report.Begin, report.End = period(item, item.Aggregate.Report.Metadata.Begin, item.Aggregate.Report.Metadata.End)
	case item.Failure != nil:
		report = newFailureReport(item, &texts)
		report.Begin, report.End = period(item, item.Failure.ArrivalDate.Unix(), item.Failure.ArrivalDate.Unix())
	default:
		report = newTLSReport(item, &texts)
		report.Begin, report.End = period(item, item.TLS.Begin, item.TLS.End)
	}
	report.Kind = reportKind(item.Kind)
	report.Member = item.Path
	if item.Damage != nil {
		report.Damage = plain(item.Damage.Error())
	}
	if texts.cut > 0 {
		report.Quirks = append(report.Quirks, dmarcd.Quirk{Name: dmarcd.QuirkCut, Count: texts.cut})
	}
	return report
}

func newAggregateReport(ctx context.Context, a *Aggregate, texts *texts) dmarcd.NewReport {
	m, key := a.Report.Metadata, a.Report.Key()
	texts.cut = a.cut
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: texts.plain(m.Organization()),
			ExternalID:   texts.plain(m.ReportID),
			Domain:       texts.plain(a.Report.Policy.Domain),
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

// storable yields the records with texts that are cut. Each iteration reads them again.
func storable(records func() iter.Seq2[aggregate.Record, error]) iter.Seq2[aggregate.Record, error] {
	return func(yield func(aggregate.Record, error) bool) {
		for record, err := range records() {
			cutRecord(&record)
			if !yield(record, err) {
				return
			}
		}
	}
}

// newFailureReport uses one hash as key and content: a failure report has no id, so it is
// never a version of another one.
func newFailureReport(item *Item, texts *texts) dmarcd.NewReport {
	r := item.Failure
	domain := texts.plain(r.ReportedDomain)
	incidents := int64(r.Incidents)
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: texts.plain(r.ReportingMTA),
			ExternalID:   texts.plain(r.MessageID),
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

func newTLSReport(item *Item, texts *texts) dmarcd.NewReport {
	r := item.TLS
	key := r.Key()
	successful, failed := r.Sessions()
	largest := int64(0)
	for i := range r.Policies {
		largest = max(largest, r.Policies[i].Successful, r.Policies[i].Failed)
	}
	report := dmarcd.NewReport{
		Report: dmarcd.Report{
			Organization: texts.plain(r.Organization()),
			ExternalID:   texts.plain(r.ReportID),
			Domain:       plain(key.Domain), // counted below
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
		domain := texts.plain(r.Policies[i].Domain)
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

// hashOf hashes texts with their lengths, so that no two lists collide.
func hashOf(texts ...string) dmarcd.Hash {
	return sha256.Sum256(reporttext.AppendTexts(nil, texts...))
}

// keyOf identifies a report of a reporter.
func keyOf(kind dmarcd.ReportKind, organization, reportID, domain string, begin, end int64) dmarcd.Hash {
	return hashOf(string(kind), organization, reportID, domain, strconv.FormatInt(begin, 10), strconv.FormatInt(end, 10))
}

// failureSameness hashes a failure report before redaction: reports about mail to two users
// may differ only in the local part. The body of the failed mail is excluded, because it may
// be truncated.
func failureSameness(m failure.Message) dmarcd.Hash {
	r, err := failure.Parse(m, failure.Options{Unredacted: true})
	if err != nil {
		return dmarcd.Hash{} // it is rejected anyway
	}
	texts := []string{
		string(dmarcd.KindFailure), r.FeedbackType, r.UserAgent, r.Version, string(r.AuthFailure),
		r.SourceText, r.ReportedDomain, r.ReportingMTA, string(r.DeliveryResult), r.DeliveryText,
		r.DKIMDomain, r.DKIMIdentity, r.DKIMSelector, r.DKIMSelectorDNS,
		r.OriginalEnvelopeID, r.OriginalMailFrom, r.MessageID, r.From,
		r.SourceIP.String(), strconv.Itoa(int(r.SourcePort)), strconv.Itoa(r.Incidents),
		strconv.FormatBool(r.AlignmentReported),
		strconv.FormatInt(r.ArrivalDate.Unix(), 10), strconv.FormatInt(r.Date.Unix(), 10),
		// Line ends in an mbox differ from those of SMTP.
		strings.TrimSpace(strings.ReplaceAll(r.Header, "\r\n", "\n")),
	}
	for _, list := range [][]string{r.AuthenticationResults, r.Misaligned, r.SPFDNS, r.OriginalRcptTo} {
		texts = append(texts, strconv.Itoa(len(list)))
		texts = append(texts, list...)
	}
	return hashOf(texts...)
}

// texts counts the texts of a report that are cut, for dmarcd.QuirkCut. What tells reports apart,
// their key and content, is computed from whole texts.
type texts struct{ cut int }

// plain returns text as plain does.
func (t *texts) plain(text string) string {
	if text = printable(text); len(text) > dmarcd.MaxKeyText {
		t.cut++
	}
	return shorten(text)
}

// cutRecord cuts the texts of a record that are part of keys, and returns how many.
func cutRecord(r *aggregate.Record) (cut int) {
	limit := func(text *string, shorten func(string) string) {
		if len(*text) > dmarcd.MaxKeyText {
			*text = shorten(*text)
			cut++
		}
	}
	limit(&r.Source, shorten)
	for _, name := range []*string{&r.HeaderFrom, &r.EnvelopeFrom, &r.EnvelopeTo} {
		limit(name, dmarcd.CutName)
	}
	for i := range r.DKIMResults {
		limit(&r.DKIMResults[i].Domain, dmarcd.CutName)
		limit(&r.DKIMResults[i].Selector, shorten)
	}
	return cut
}

// plain returns text as valid UTF-8, without control characters and limited to
// dmarcd.MaxKeyText.
func plain(text string) string { return shorten(printable(text)) }

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// shorten cuts text to dmarcd.MaxKeyText at a rune boundary.
func shorten(text string) string {
	if len(text) <= dmarcd.MaxKeyText {
		return text
	}
	end := dmarcd.MaxKeyText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
