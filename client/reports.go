package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
)

// GetTeamSummary counts the messages of all domains.
func (c *Client) GetTeamSummary(ctx context.Context, period Period) (Summary, error) {
	return do[Summary](ctx, c, call{method: http.MethodGet, path: []string{"reports"}, filter: period})
}

// GetDomainSummary counts the messages of a domain.
func (c *Client) GetDomainSummary(ctx context.Context, domain string, period Period) (Summary, error) {
	return do[Summary](ctx, c, call{method: http.MethodGet, path: []string{"reports", domain}, filter: period})
}

// UploadReport sends a file or a message with reports. It is not retried: call it again after an error
// of the kind dmarcd.ErrTemporary. A report that was stored before does not count twice.
func (c *Client) UploadReport(ctx context.Context, content io.Reader) (Receipts, error) {
	return post[Receipts](ctx, c, content, "reports")
}

// ReportFilter selects reports.
type ReportFilter struct {
	Period
	Domain       string `query:"domain"`
	Tag          string `query:"tag"`
	Organization string `query:"organization"`
	ExternalID   string `query:"report_id"`
	Kind         string `query:"kind"` // aggregate, failure or tls
	Quirk        string `query:"quirk"`
	Genuine      string `query:"genuine"` // yes, no or unknown
	State        string `query:"state"`   // counted, excluded, replaced or held
	Unclaimed    bool   `query:"unclaimed"`
	PageSize     int    `query:"limit"`
}

// ListReports lists reports, the latest first.
func (c *Client) ListReports(ctx context.Context, filter ReportFilter) iter.Seq2[Report, error] {
	return list[Report](ctx, c, filter, "insights", "reports")
}

// GetReport returns a report with its first records.
func (c *Client) GetReport(ctx context.Context, id string) (FullReport, error) {
	return get[FullReport](ctx, c, "insights", "reports", id)
}

// SetReportCounted includes a report in the counters, or excludes it.
func (c *Client) SetReportCounted(ctx context.Context, id string, counted bool) (FullReport, error) {
	return patch[FullReport](ctx, c, map[string]bool{"counted": counted}, "insights", "reports", id)
}

// Selection selects reports of a reporter, of days, or both.
type Selection struct {
	Reporter *string `json:"reporter"`
	From     *string `json:"from"`
	To       *string `json:"to"`
	Counted  bool    `json:"counted"`
}

// SetReportsCounted is SetReportCounted for all selected reports. It returns how many changed.
func (c *Client) SetReportsCounted(ctx context.Context, selected Selection) (int, error) {
	result, err := post[struct {
		Changed int `json:"changed"`
	}](ctx, c, selected, "insights", "reports", "exclude")
	return result.Changed, err
}

// DeleteReport deletes a report for good.
func (c *Client) DeleteReport(ctx context.Context, id string) error {
	return c.remove(ctx, "insights", "reports", id)
}

// ListRecords lists the records of an aggregate report.
func (c *Client) ListRecords(ctx context.Context, report string) iter.Seq2[Record, error] {
	return list[Record](ctx, c, nil, "insights", "reports", report, "records")
}

// GetReportOriginal returns the original of a report. The caller closes it.
func (c *Client) GetReportOriginal(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.original(ctx, "reports", id)
}

// ListRejected lists rejected reports, the latest first.
func (c *Client) ListRejected(ctx context.Context) iter.Seq2[Rejected, error] {
	return list[Rejected](ctx, c, nil, "insights", "rejected")
}

// GetRejectedOriginal returns the original of a rejected report. The caller closes it.
func (c *Client) GetRejectedOriginal(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.original(ctx, "rejected", id)
}

func (c *Client) original(ctx context.Context, kind, id string) (io.ReadCloser, error) {
	response, err := c.send(ctx, call{method: http.MethodGet, path: []string{"insights", kind, id, "original"}})
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// RetryRejected reads the original of a rejected report again.
func (c *Client) RetryRejected(ctx context.Context, id string) (Receipts, error) {
	return post[Receipts](ctx, c, nil, "insights", "rejected", id, "retry")
}

// DeleteRejected deletes a rejected report.
func (c *Client) DeleteRejected(ctx context.Context, id string) error {
	return c.remove(ctx, "insights", "rejected", id)
}

// RecordFilter selects records of aggregate reports. All includes those that do not count, Unsettled
// those of the last seconds, behind which records may be missed later.
type RecordFilter struct {
	Period
	Domain    string `query:"domain"`
	All       bool   `query:"all"`
	Unsettled bool   `query:"unsettled"`
	After     string `query:"after"` // the id of a record
}

// ExportRecords lists records with the data of their reports, in the order in which those arrived.
// After a lost connection it continues after the last record.
func (c *Client) ExportRecords(ctx context.Context, filter RecordFilter) iter.Seq2[ExportedRecord, error] {
	return func(yield func(ExportedRecord, error) bool) {
		for line, err := range c.ExportRecordLines(ctx, filter) {
			var record ExportedRecord
			if err == nil {
				err = json.Unmarshal(line, &record)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ExportRecordLines is ExportRecords without decoding: each record is the JSON object that the server
// sent, which may have members that this version does not know. It is valid until the next one.
func (c *Client) ExportRecordLines(ctx context.Context, filter RecordFilter) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var last []byte // the last record that was passed on
		for attempt := 0; ; attempt++ {
			before := filter.After
			ended, err := c.exportPart(ctx, filter, &last, yield)
			if ended {
				return
			}
			if last != nil {
				if filter.After = recordID(last); filter.After == "" {
					err = errNoRecords
				}
			}
			if filter.After != before {
				attempt = 0
			}
			if attempt >= c.Retries || ctx.Err() != nil || errors.As(err, new(*Error)) || errors.Is(err, errNoRecords) {
				yield(nil, err)
				return
			}
		}
	}
}

// errNoRecords means that an answer is not from this API.
var errNoRecords = errors.New("the answer of the server is not a list of records in NDJSON")

// recordID returns the id of a record, "" if it has none.
func recordID(line []byte) string {
	var record struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(line, &record) // "" is no id
	return record.ID
}

// exportPart reads one answer, and reports whether the list or its reader ended. last is set to each
// record before it is passed on.
func (c *Client) exportPart(ctx context.Context, filter RecordFilter, last *[]byte, yield func([]byte, error) bool) (ended bool, err error) {
	response, err := c.send(ctx, call{method: http.MethodGet, path: []string{"insights", "records"}, filter: filter})
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }() // its reader may end early
	in := bufio.NewReaderSize(response.Body, exportBuffer)
	for line := []byte(nil); ; {
		line = line[:0]
		for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
			var part []byte
			part, err = in.ReadSlice('\n')
			line = append(line, part...)
		}
		record := bytes.TrimSpace(line)
		switch {
		case errors.Is(err, io.EOF) && len(record) == 0:
			return true, nil
		case errors.Is(err, io.EOF) && !json.Valid(record):
			return false, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return false, err
		case !json.Valid(record) || record[0] != '{':
			return false, errNoRecords
		}
		line, *last = *last, record
		if !yield(record, nil) {
			return true, nil
		}
	}
}

// exportBuffer is the size of a read of an export.
const exportBuffer = 64 << 10
