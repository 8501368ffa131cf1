package main

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// csvHeader lists the columns. Columns that do not apply to a kind of report are empty.
var csvHeader = []string{
	"file", "member", "kind", "org_name", "report_id", "domain", "begin", "end",
	"source_ip", "count", "compliant", "disposition", "dkim", "spf", "header_from", "envelope_from", "envelope_to",
	"dkim_results", "spf_results", "reasons", "policy_type", "result",
}

// csvRow contains the fields of a row that are not part of the report summary.
type csvRow struct {
	source                               string
	count                                int64
	compliant                            string
	disposition, dkim, spf               string
	headerFrom, envelopeFrom, envelopeTo string
	dkimResults, spfResults, reasons     string
	policyType, result                   string
}

// csvReports prints one row per record.
type csvReports struct {
	out   *csv.Writer
	begun bool
}

func newCSVReports(out io.Writer) *csvReports { return &csvReports{out: csv.NewWriter(out)} }

func (c *csvReports) print(ctx context.Context, file string, item *intake.Item) error {
	if err := c.begin(); err != nil {
		return err
	}
	s := summaryOf(item)
	switch {
	case item.Aggregate != nil:
		for record, err := range item.Aggregate.Records(ctx) {
			if err != nil {
				return err
			}
			if err := c.row(file, item, s, recordRow(record)); err != nil {
				return err
			}
		}
	case item.Failure != nil:
		r := item.Failure
		return c.row(file, item, s, csvRow{
			source: r.Source(), count: int64(r.Incidents), compliant: yesNo(false), disposition: string(r.DeliveryResult),
			headerFrom: domainOf(r.From), envelopeFrom: domainOf(r.OriginalMailFrom), result: string(r.AuthFailure),
		})
	default:
		for _, policy := range item.TLS.Policies {
			s.domain = policy.Domain
			for _, row := range tlsRows(policy) {
				if err := c.row(file, item, s, row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// begin prints the header once.
func (c *csvReports) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.out.Write(csvHeader)
}

// row prints one row, in the order of csvHeader.
func (c *csvReports) row(file string, item *intake.Item, s summary, r csvRow) error {
	fields := []string{
		file, item.Path, item.Kind.String(), s.organization, s.reportID, s.domain, csvTime(s.begin), csvTime(s.end),
		r.source, strconv.FormatInt(r.count, 10), r.compliant, r.disposition, r.dkim, r.spf,
		r.headerFrom, r.envelopeFrom, r.envelopeTo, r.dkimResults, r.spfResults, r.reasons, r.policyType, r.result,
	}
	return c.out.Write(convert(fields, wire.EscapeFormula))
}

// end prints the header even without reports.
func (c *csvReports) end() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.out.Flush()
	return c.out.Error()
}

// csvTime formats a time; 0 is "".
func csvTime(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return wire.Time(time.Unix(seconds, 0))
}

// domainOf returns the domain of an address.
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

func recordRow(r aggregate.Record) csvRow {
	dkim := convert(r.DKIMResults, func(d aggregate.DKIMResult) string {
		return joinWords(string(d.Result), d.Domain, d.Selector)
	})
	spf := convert(r.SPFResults, func(s aggregate.SPFResult) string {
		return joinWords(string(s.Result), s.Domain, s.Scope)
	})
	reasons := convert(r.Reasons, func(reason aggregate.Reason) string { return joinWords(reason.Type, reason.Comment) })
	return csvRow{
		source: r.Source, count: r.Count, compliant: yesNo(r.Compliant()),
		disposition: string(r.Disposition), dkim: string(r.DKIM), spf: string(r.SPF),
		headerFrom: r.HeaderFrom, envelopeFrom: r.EnvelopeFrom, envelopeTo: r.EnvelopeTo,
		dkimResults: strings.Join(dkim, "; "), spfResults: strings.Join(spf, "; "), reasons: strings.Join(reasons, "; "),
	}
}

// joinWords joins the non-empty words.
func joinWords(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// tlsRows returns a row for the successful sessions of a policy and one per type of
// failure.
func tlsRows(p tlsrpt.Policy) []csvRow {
	rows := []csvRow{{count: p.Successful, compliant: yesNo(true), policyType: string(p.Type), result: "successful"}}
	for _, f := range p.Failures {
		rows = append(rows, csvRow{
			source: f.SendingMTAIP, count: f.FailedSessions, compliant: yesNo(false), policyType: string(p.Type), result: string(f.ResultType),
		})
	}
	if len(p.Failures) == 0 && p.Failed > 0 {
		rows = append(rows, csvRow{count: p.Failed, compliant: yesNo(false), policyType: string(p.Type), result: "failed"})
	}
	return rows
}
