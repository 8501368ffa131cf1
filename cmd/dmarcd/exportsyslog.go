package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

const (
	// pollRecords is the interval in which a following export queries for new records.
	pollRecords = 10 * time.Second
	// Retries to reach a syslog server start at the first interval and double up to the
	// longest.
	firstRetry, longestRetry = time.Second, time.Minute
	// syslogBatch is the number of events that are sent at once.
	syslogBatch = 100
)

// syslogTarget is where and how messages are sent.
type syslogTarget struct {
	url            string
	events, follow bool
	cursorFile     string
}

// exportSyslog sends records or events to a syslog server.
func (p *program) exportSyslog(cmd *cobra.Command, filter service.RecordFilter, target syslogTarget) error {
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
	err = p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
		if target.events {
			return s.events(ctx, cfg, t, filter.Domain, cursor)
		}
		return s.records(ctx, t, filter, cursor)
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

// records sends records after the cursor: the id of a record, or "".
func (s *syslogExport) records(ctx context.Context, t *service.Team, filter service.RecordFilter, cursor string) error {
	filter.Settled = s.target.follow || s.target.cursorFile != ""
	var after service.RecordPosition
	if cursor != "" {
		report, share, n, err := wire.ParseRecordID(cursor)
		if err != nil {
			return fmt.Errorf("%s: %w", s.target.cursorFile, err)
		}
		after = service.RecordPosition{Report: report, Record: service.RecordCursor{Share: share, N: n, Begun: true}}
	}
	records, err := openExport(ctx, t, filter, after)
	if err != nil {
		return err
	}
	for {
		read, err := records.Next(ctx, func(batch []service.ReportRecord) error { return s.send(ctx, convert(batch, recordMessage)) })
		if err != nil || read == 0 && !s.target.follow {
			return err
		}
		if read == 0 {
			err = pause(ctx, pollRecords)
		}
		if err != nil {
			return err
		}
	}
}

func recordMessage(r service.ReportRecord) export.Message {
	columns := exportedColumns(r)
	return export.Message{Kind: "record", ID: columns.ID, At: r.Report.ReceivedAt, JSON: jsonLine(wire.NewExportedRecord(columns, r.Report))}
}

// events sends events after the cursor: the number of an event, or "".
func (s *syslogExport) events(ctx context.Context, cfg config.Config, t *service.Team, domain, cursor string) error {
	domain, err := domainFlag(ctx, t, domain)
	if err != nil {
		return err
	}
	since := int64(0)
	if cursor != "" {
		if since, err = strconv.ParseInt(cursor, 10, 64); err != nil || since < 0 {
			return fmt.Errorf("%s: must have the number of an event, not %q", s.target.cursorFile, cursor)
		}
	}
	wait := time.Duration(0)
	if s.target.follow {
		wait = followWait
	}
	for {
		events, err := t.EventsSince(ctx, service.EventFilter{Domain: domain}, since, syslogBatch, wait)
		if err == nil && len(events) > 0 {
			err = s.send(ctx, convert(events, func(e dmarcd.Event) export.Message {
				return export.Message{Kind: "event", ID: strconv.FormatInt(e.Seq, 10), At: e.At, JSON: jsonLine(wire.NewEvent(e, cfg.BaseURL))}
			}))
			since = events[len(events)-1].Seq
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || len(events) == 0 && !s.target.follow {
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
