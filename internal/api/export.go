package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	ndjson = "application/x-ndjson"
	// maxExport limits an answer. The client continues after its last line, and is
	// authenticated again.
	maxExport = time.Hour
)

// exportRecords streams records in batches, which are read, encoded and compressed in turns. A slow
// client holds neither a turn nor a connection to the database nor memory beyond a batch, and is cut off
// if it does not read a batch in time.
func (a *API) exportRecords(c *call) error {
	filter, after := readRecordQuery(c.query)
	if c.query.err != nil {
		return c.query.err
	}
	export, err := c.service.ExportRecords(c.r.Context(), filter, after)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	_ = a.bodyRead(c.w)
	end := time.Now().Add(maxExport)
	var out *list
	next := func() (n int, err error) {
		return export.Next(c.r.Context(), func(batch []service.ReportRecord) error {
			if out == nil {
				out = a.newList(c, len(batch) >= worthCompressing)
			}
			out.add(recordLines(batch))
			return nil
		})
	}
	// Read the first batch before the status, so that an error can still be reported.
	n, err := next()
	if err != nil {
		return err
	}
	if out == nil {
		out = a.newList(c, false)
	}
	c.w.Header().Set("Content-Type", ndjson)
	if c.r.Method == http.MethodHead {
		return nil
	}
	out.deadline = func() time.Time { return time.Now().Add(a.options.WriteTimeout) }
	for err == nil && n > 0 && time.Now().Before(end) {
		if err = out.send(); err == nil {
			n, err = next()
		}
		if err == nil && n > 0 {
			err = a.stillAllowed(c)
		}
	}
	if err == nil && n == 0 {
		err = out.finish()
	}
	if err != nil || n > 0 {
		// The status is sent. Only a broken connection can show that the answer is incomplete.
		if err != nil && c.r.Context().Err() == nil {
			a.options.Log.WarnContext(c.r.Context(), "sending records failed", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

func readRecordQuery(q *query) (filter service.RecordFilter, after service.RecordPosition) {
	filter = service.RecordFilter{Settled: true, Days: q.days(), Domain: q.domain(), All: word(q, "all", "true", "false") == "true"}
	if q.Has("after") {
		var err error
		after.Record.Begun = true
		after.Report, after.Record.Share, after.Record.N, err = wire.ParseRecordID(q.Get("after"))
		q.fail(err)
	}
	return filter, after
}

// recordLines encodes records as lines of JSON.
func recordLines(batch []service.ReportRecord) []byte {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	encoder.SetEscapeHTML(false)
	for _, r := range batch {
		columns := wire.NewExportedColumns(wire.FormatRecordID(r.Report.ID, r.Cursor.Share, r.Cursor.N), r.Domain, r.Report, r.Record.Record)
		if err := encoder.Encode(wire.NewExportedRecord(columns, r.Report)); err != nil {
			panic(err) // our own types can be encoded
		}
	}
	return lines.Bytes()
}
