package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// pollRecords is the interval in which a following export queries for new records.
	pollRecords = 10 * time.Second
	// settleRounds is for how many intervals a new report may not be final.
	settleRounds = 6
	// Retries to reach a syslog server start at the first interval and double up to the
	// longest.
	firstRetry, longestRetry = time.Second, time.Minute
	// syslogBatch is the number of records that are sent at once.
	syslogBatch = 100
)

// syslogTarget is where and how messages are sent.
type syslogTarget struct {
	url                   string
	events, audit, follow bool
	cursorFile            string
}

// exportSyslog sends records, events or the audit log to a syslog server.
func (p *program) exportSyslog(cmd *cobra.Command, filter client.RecordFilter, target syslogTarget) error {
	server, err := export.NewSyslog(target.url)
	if err != nil {
		return err
	}
	cursor, err := readCursorFile(target.cursorFile)
	if err != nil {
		return err
	}
	s := &syslogExport{program: p, target: target, server: server}
	ctx := cmd.Context()
	err = p.withClient(cmd, func(c *client.Client) error {
		if target.events {
			return s.events(ctx, c, filter.Domain, cursor)
		}
		if target.audit {
			return s.audit(ctx, c, filter.Period, cursor)
		}
		filter.After, filter.Unsettled = cursor, !target.follow && target.cursorFile == ""
		return s.records(ctx, c, filter)
	})
	if ctx.Err() != nil && target.follow {
		err = nil // interrupted
	}
	if err = errors.Join(err, server.Close()); err != nil {
		return err
	}
	p.notify("%s sent to %s\n", number(s.sent, "message"), target.url)
	return nil
}

// syslogExport is one run of an export to a syslog server.
type syslogExport struct {
	*program

	target syslogTarget
	server *export.Syslog
	sent   int
}

// records sends records after the cursor of the filter. Each request for records is an entry of the
// audit log, so it asks only while the newest report may have records that are not sent yet.
func (s *syslogExport) records(ctx context.Context, c *client.Client, filter client.RecordFilter) error {
	if filter.After != "" {
		if _, _, _, err := wire.ParseRecordID(filter.After); err != nil {
			return fmt.Errorf("%s: %w", s.target.cursorFile, err)
		}
	}
	newest := ""
	for rounds := settleRounds; ; rounds-- {
		latest, err := first(1, c.ListReports(ctx, client.ReportFilter{Kind: string(dmarcd.KindAggregate), PageSize: 1}))
		if err != nil {
			return err
		}
		if len(latest) > 0 && latest[0].ID != newest {
			newest, rounds = latest[0].ID, settleRounds
		}
		if rounds > 0 {
			err = s.newRecords(ctx, c, &filter)
		}
		if err == nil && s.target.follow {
			err = pause(ctx, pollRecords)
		}
		if err != nil || !s.target.follow {
			return err
		}
	}
}

// newRecords sends the records that can be read now, and moves the cursor of the filter.
func (s *syslogExport) newRecords(ctx context.Context, c *client.Client, filter *client.RecordFilter) error {
	var batch []export.Message
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		filter.After = batch[len(batch)-1].ID
		err := s.send(ctx, batch)
		batch = nil
		return err
	}
	for record, err := range c.ExportRecords(ctx, *filter) {
		if err != nil {
			return unknownDomain(err, filter.Domain)
		}
		at, err := time.Parse(time.RFC3339, record.ReceivedAt)
		if batch = append(batch, export.Message{Kind: "record", ID: record.ID, At: at, JSON: jsonLine(record)}); err == nil && len(batch) == syslogBatch {
			err = send()
		}
		if err != nil {
			return err
		}
	}
	return send()
}

// events sends events after the cursor: the number of an event, or "".
func (s *syslogExport) events(ctx context.Context, c *client.Client, domain, cursor string) error {
	domain, err := domainFlag(ctx, c, domain)
	if err != nil {
		return err
	}
	since := int64(0)
	if cursor != "" {
		if since, err = strconv.ParseInt(cursor, 10, 64); err != nil || since < 0 {
			return fmt.Errorf("%s: must have the number of an event, not %q", s.target.cursorFile, cursor)
		}
	}
	list := c.ListEventsSince
	if s.target.follow {
		list = c.FollowEvents
	}
	for event, err := range list(ctx, since, client.EventFilter{Domain: domain}) {
		if err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339, event.At)
		if err == nil {
			err = s.send(ctx, []export.Message{{Kind: "event", ID: strconv.FormatInt(event.Seq, 10), At: at, JSON: jsonLine(event)}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settledAudit is how old an entry of the audit log is when all before it can be read.
const settledAudit = 10 * time.Second

// audit sends entries of the audit log, oldest first, after the cursor: the id of an entry, or "".
func (s *syslogExport) audit(ctx context.Context, c *client.Client, within client.Period, cursor string) error {
	if cursor != "" && !strings.HasPrefix(cursor, "aud_") {
		return fmt.Errorf("%s: must have the id of an entry of the audit log, not %q", s.target.cursorFile, cursor)
	}
	for {
		var batch []export.Message
		for entry, err := range c.ListAudit(ctx, client.AuditFilter{Period: within}) {
			if err != nil {
				return err
			}
			if entry.ID == cursor {
				break
			}
			at, err := time.Parse(time.RFC3339, entry.At)
			if err != nil {
				return err
			}
			if s.target.cursorFile == "" && !s.target.follow || time.Since(at) > settledAudit {
				batch = append(batch, export.Message{Kind: "audit", ID: entry.ID, At: at, JSON: jsonLine(entry)})
			}
		}
		slices.Reverse(batch)
		for some := range slices.Chunk(batch, syslogBatch) {
			if err := s.send(ctx, some); err != nil {
				return err
			}
			cursor = some[len(some)-1].ID
		}
		if !s.target.follow {
			return nil
		}
		if err := pause(ctx, pollRecords); err != nil {
			return err
		}
	}
}

// send sends messages and saves the id of the last one. A following export retries until the
// server accepts them.
func (s *syslogExport) send(ctx context.Context, messages []export.Message) error {
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		err := s.server.Send(ctx, messages)
		if err == nil {
			break
		}
		if !s.target.follow || ctx.Err() != nil {
			return err
		}
		s.notify("%s; the next attempt is in %s\n", printable(err.Error()), wait)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	s.sent += len(messages)
	return writeCursorFile(s.target.cursorFile, messages[len(messages)-1].ID)
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// jsonLine returns v as JSON in one line.
func jsonLine(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types can be encoded
	}
	return line
}

// readCursorFile returns the content of a cursor file, "" without one.
func readCursorFile(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	content, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(content)), err
}

// writeCursorFile replaces a cursor file in one step, so that it is never half written.
func writeCursorFile(file, cursor string) error {
	if file == "" {
		return nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(cursor + "\n")
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // it is of no use
	}
	return err
}
