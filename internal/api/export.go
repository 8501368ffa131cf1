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

// exportRecords streams records in batches. A slow client holds neither a connection to the
// database nor memory beyond a batch, and is cut off if it does not read a batch in time.
func (a *API) exportRecords(c *call) error {
	filter, after, err := readRecordQuery(c)
	if err != nil {
		return err
	}
	export, err := c.service.ExportRecords(c.r.Context(), filter, after)
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	_ = a.bodyRead(c.w)
	end := time.Now().Add(maxExport)
	// Read the first batch before the status, so that an error can still be reported.
	batch, err := export.Next(c.r.Context())
	if err != nil {
		return err
	}
	out := a.newList(c, len(batch) >= worthCompressing)
	c.w.Header().Set("Content-Type", ndjson)
	if c.r.Method == http.MethodHead {
		return nil
	}
	out.deadline = func() time.Time { return time.Now().Add(a.options.WriteTimeout) }
	for err == nil && len(batch) > 0 && time.Now().Before(end) {
		if err = out.send(recordLines(batch)); err == nil {
			batch, err = export.Next(c.r.Context())
		}
	}
	if err == nil && len(batch) == 0 {
		err = out.finish()
	}
	if err != nil || len(batch) > 0 {
		// The status is sent. Only a broken connection can show that the answer is incomplete.
		if err != nil && c.r.Context().Err() == nil {
			a.options.Log.WarnContext(c.r.Context(), "sending records failed", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

func readRecordQuery(c *call) (filter service.RecordFilter, after service.RecordPosition, err error) {
	filter.Settled = true
	asked, err := readCounts[string](c)
	if err != nil {
		return filter, after, err
	}
	filter.Days, filter.Domain = asked.days, asked.domain
	all, err := readWord(c, "all", "true", "false")
	if err != nil {
		return filter, after, err
	}
	filter.All = all == "true"
	if c.query.Has("after") {
		after.Record.Begun = true
		after.Report, after.Record.Share, after.Record.N, err = wire.ParseRecordID(c.query.Get("after"))
	}
	return filter, after, err
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
