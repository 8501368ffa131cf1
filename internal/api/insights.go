package api

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// listDaily lists the counts by day, of one domain, each domain or the team.
func (a *API) listDaily(c *call) error {
	limit, position := c.query.part()
	var after service.DailyCursor
	if position != "" {
		var err error
		after, err = parseDailyCursor(position)
		c.query.fail("after", err)
	}
	days, by, domain, team := c.query.days(), word(c.query, "by", "domain"), c.query.domain(), tagged(c)
	if c.query.flag("classes") {
		return a.listClassDays(c, limit, position, after.Day, days, by, domain)
	}
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	byDomain := by == "domain" && domain == ""
	if !byDomain && position != "" && (days.From == nil || *days.From <= after.Day) {
		// These lists are ordered by day alone: continue with the rest of the range.
		days.From = new(after.Day + 1)
	}
	var found []service.DailyCounts
	var err error
	switch {
	case byDomain:
		found, err = team.DailyByDomain(c.r.Context(), days, after, limit+1)
	case domain != "":
		found, err = team.DomainDaily(c.r.Context(), domain, days, limit+1)
	default:
		found, err = team.Daily(c.r.Context(), days, limit+1)
	}
	if err != nil {
		return err
	}
	return writePage(c, wire.NewPage(found, limit, formatDailyCursor, func(d service.DailyCounts) wire.Daily {
		return wire.NewDaily(d.Day, d.Domain, d.Counts)
	}))
}

// maxClassDays limits the days of listClassDays: the class of a sender follows from all of them.
const maxClassDays = 731

// listClassDays is listDaily with the classes of senders. Every page has those of the whole period.
func (a *API) listClassDays(c *call, limit int, position string, after dmarcd.Day, days dmarcd.Days, by, domain string) error {
	switch {
	case by != "":
		c.query.reject("classes", "The parameter classes cannot be combined with by. Ask for one domain with the parameter domain.")
	case days.From == nil || days.To == nil:
		c.query.reject("classes", "The parameter classes needs the parameters from and to: the class of a sender depends on the period.")
	case *days.To-*days.From >= maxClassDays:
		c.query.reject("classes", "With the parameter classes, from and to may be at most 731 days apart.")
	}
	if c.query.err != nil {
		return c.query.err
	}
	if err := c.reserveRows(limit); err != nil {
		return err
	}
	found, err := tagged(c).Classes(c.r.Context(), domain, *days.From, *days.To)
	if err != nil {
		return err
	}
	var rest []insight.ClassDay
	for _, day := range found.Days {
		if all := day.All(); all.Total() > 0 && (position == "" || day.Day > after) {
			rest = append(rest, day)
		}
	}
	cursor := func(d insight.ClassDay) string { return wire.FormatPosition(int64(d.Day), domain) }
	return writePage(c, wire.NewPage(rest[:min(len(rest), limit+1)], limit, cursor, func(d insight.ClassDay) wire.Daily {
		daily := wire.NewDaily(d.Day, domain, d.All())
		daily.Classes = &wire.Classes{
			YoursPassing: d.Yours.Compliant, YoursFailing: d.Yours.NonCompliant,
			Forwarded: d.Forwarded.Total(), Spoofed: d.Spoofed.Total(), Unknown: d.Unknown.Total(),
		}
		return daily
	}))
}

func formatDailyCursor(d service.DailyCounts) string {
	return wire.FormatPosition(int64(d.Day), d.Domain)
}

func parseDailyCursor(text string) (service.DailyCursor, error) {
	day, domain, err := wire.ParsePosition(text)
	if err != nil || day < math.MinInt32 || day >= math.MaxInt32 {
		return service.DailyCursor{}, wire.ErrAfter
	}
	if domain != "" {
		if domain, err = dmarcd.ParseName(domain); err != nil {
			return service.DailyCursor{}, wire.ErrAfter
		}
	}
	return service.DailyCursor{Domain: domain, Day: dmarcd.Day(day)}, nil
}

const (
	ndjson = "application/x-ndjson"
	// maxExport limits an answer. The client continues after its last line, and is
	// authenticated again.
	maxExport = time.Hour
)

// exportRecords streams records in batches. Reading, encoding and compressing a batch needs a slot
// of the fair queue. A slow client holds no slot, no database connection and no memory beyond a
// batch; it is disconnected if it does not read a batch in time.
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
	filter = service.RecordFilter{Settled: !q.flag("unsettled"), Days: q.days(), Domain: q.domain(), All: q.flag("all")}
	if q.Has("after") {
		var err error
		after.Record.Begun = true
		after.Report, after.Record.Share, after.Record.N, err = wire.ParseRecordID(q.Get("after"))
		q.fail("after", err)
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

// defaultHits is the default limit of hits per kind.
const defaultHits = 10

// search finds domains, senders and reports.
func (a *API) search(c *call) error {
	limit := c.query.limit(defaultHits)
	if c.query.err != nil {
		return c.query.err
	}
	hits, err := c.service.Search(c.r.Context(), c.query.Get("q"), limit)
	if err != nil {
		return err
	}
	page := wire.Page[wire.Hit]{Items: []wire.Hit{}}
	for _, hit := range hits {
		page.Items = append(page.Items, wire.NewHit(string(hit.Kind), hit.Key, hit.Title, hit.Detail))
	}
	return c.writeCacheable(page)
}
