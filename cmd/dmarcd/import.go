package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/intake/foreign"
	"github.com/dmarcd/dmarcd/internal/service"
)

func (p *program) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --team NAME PATH...",
		Short: "Import reports from files, folders, mailboxes and archives",
		Long: `Imports reports from files, folders (recursively), mbox files and Maildirs, in any
container format. Duplicates count once. Content that is not a report, or cannot be
stored, is reported on standard error and stored as rejected; see "dmarcd report
rejected".

--from parsedmarc reads the JSON output of parsedmarc, also in gzip. docs/moving.md
describes how to move from other tools.

To resume an interrupted import, run it again with the same paths; --all starts over.

Exit status: 0 if everything was imported; 1 if something was rejected; 2 if a file
could not be read.`,
		Example: `  dmarcd import --team acme old-reports
  dmarcd import --team acme --json archive.zip mail.mbox Maildir
  dmarcd import --team acme --from parsedmarc aggregate.json smtp_tls.json`,
		Args: cobra.MinimumNArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	all := cmd.Flags().Bool("all", false, "start over instead of resuming an interrupted import")
	from := cmd.Flags().String("from", "", "read data of another tool: parsedmarc")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *from != "" && *from != "parsedmarc" {
			return fmt.Errorf("--from %q: must be parsedmarc", *from)
		}
		return p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
			name := journalName(cmd.Flag("team").Value.String()+*from, args)
			journal, err := openJournal(filepath.Join(cfg.Data, name), *all)
			if err != nil {
				return err
			}
			store, err := t.Import(importSource(args))
			if err != nil {
				return errors.Join(err, journal.Close())
			}
			run := &importing{program: p, json: *asJSON, parsedmarc: *from != ""}
			return run.files(cmd.Context(), cfg, store, files.List(args...), journal)
		})
	}
	return cmd
}

// importSource describes the source of an import for the audit log.
func importSource(paths []string) string {
	if more := len(paths) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", paths[0], more)
	}
	return paths[0]
}

// importing is one run of an import.
type importing struct {
	*program

	json       bool
	parsedmarc bool // instead of reports as they were received
	counts     importCounts
	unread     int
	bar        func(bytes int)
}

// importCounts counts results; it is the JSON output.
type importCounts struct {
	Files      int   `json:"files"`
	Before     int   `json:"read_before"`
	Stored     int   `json:"stored"`
	Replaced   int   `json:"replaced"`
	Duplicate  int   `json:"duplicate"`
	Unclaimed  int   `json:"unclaimed"`
	Held       int   `json:"held"`
	Rejected   int   `json:"rejected"`
	Unreadable int   `json:"unreadable"`
	Records    int   `json:"records"`
	Messages   int64 `json:"messages"`
}

func (r *importing) files(ctx context.Context, cfg config.Config, store intake.DeliveryStore, listing files.Listing, journal *files.Journal) error {
	for _, err := range listing.Unread {
		r.cannot(err.Error())
	}
	bar, done := r.progressBytes(listing.Bytes, "importing")
	r.bar = bar
	r.counts.Files = len(listing.Files) + len(listing.Unread)
	importer := &files.Importer{Acceptor: app.NewAcceptor(cfg, r.logger(cfg.Log)), Store: store, Journal: journal, OnResult: r.print}
	if r.parsedmarc {
		importer.Split = func(in io.Reader) iter.Seq2[func(io.Writer) error, error] {
			return foreign.Split(in, importer.Acceptor.Limits.Containers.Folder)
		}
	}
	err := importer.Run(ctx, listing.Files)
	done()
	if err != nil {
		err = fmt.Errorf("the import was interrupted; run it again to resume: %w", err)
		return errors.Join(err, journal.Close())
	}
	if err := journal.Remove(); err != nil {
		return err
	}
	if err := r.printTotals(); err != nil {
		return err
	}
	switch {
	case r.unread > 0:
		return fmt.Errorf("%d of %d files could not be read", r.unread, r.counts.Files)
	case r.counts.Rejected > 0:
		return errReported
	}
	return nil
}

// journalName derives the name of the journal from the team and the paths.
func journalName(team string, paths []string) string {
	hash := sha256.New()
	_, _ = io.WriteString(hash, team) // never fails
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		_, _ = io.WriteString(hash, "\n"+path)
	}
	return "import-" + hex.EncodeToString(hash.Sum(nil)[:8]) + ".journal"
}

// openJournal opens the journal of an import, or a new one if all is true.
func openJournal(path string, all bool) (*files.Journal, error) {
	// With PostgreSQL the data folder may not exist yet.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder (set by DMARCD_DATA): %w", err)
	}
	journal, err := files.OpenJournal(path)
	if err != nil || !all {
		return journal, err
	}
	if err := journal.Remove(); err != nil {
		return nil, err
	}
	return files.OpenJournal(path)
}

// print counts and reports the result of a file.
func (r *importing) print(result files.Result) {
	r.bar(int(result.Bytes))
	switch {
	case result.Before:
		r.counts.Before++
	case errors.Is(result.Err, dmarcd.ErrLimit), errors.Is(result.Err, dmarcd.ErrInvalid):
		r.counts.Rejected++
		r.notify("%s\n", printable(result.Name+": "+result.Err.Error()))
	case result.Err != nil:
		r.cannot(result.Err.Error())
	}
	for _, receipt := range result.Receipts {
		r.receipt(result.Name, receipt)
	}
}

func (r *importing) receipt(name string, receipt dmarcd.Receipt) {
	c := &r.counts
	switch receipt.Status {
	case dmarcd.Stored:
		c.Stored++
	case dmarcd.Replaced:
		c.Replaced++
	case dmarcd.Duplicate:
		c.Duplicate++
	case dmarcd.Unclaimed:
		c.Unclaimed++
	case dmarcd.Held:
		c.Held++
	case dmarcd.StatusRejected:
		c.Rejected++
	}
	if receipt.Reason != "" {
		where := name
		if receipt.Member != "" {
			where += ": " + receipt.Member
		}
		r.notify("%s\n", printable(where+": "+receipt.Reason))
	}
	if receipt.Status != dmarcd.Duplicate {
		c.Records += receipt.Records
		c.Messages = dmarcd.AddCount(c.Messages, receipt.Messages)
	}
}

// cannot reports an unreadable file.
func (r *importing) cannot(what string) {
	r.counts.Unreadable++
	r.unread++
	r.notify("%s\n", printable(what))
}

// printTotals prints the totals.
func (r *importing) printTotals() error {
	c := r.counts
	if r.json {
		return printJSON(r.out, c)
	}
	parts := []string{number(c.Files-c.Before-c.Unreadable, "file") + " read"}
	for _, part := range []struct {
		n    int
		text string
	}{
		{c.Before, fmt.Sprintf("%d already imported", c.Before)},
		{c.Stored, number(c.Stored, "report") + " stored"},
		{c.Replaced, fmt.Sprintf("%d replaced", c.Replaced)},
		{c.Duplicate, number(c.Duplicate, "duplicate")},
		{c.Unclaimed, fmt.Sprintf("%d about no domain of the team", c.Unclaimed)},
		{c.Held, fmt.Sprintf("%d held", c.Held)},
		{c.Rejected, fmt.Sprintf("%d rejected", c.Rejected)},
	} {
		if part.n > 0 {
			parts = append(parts, part.text)
		}
	}
	_, err := fmt.Fprintf(r.out, "%s; %s, %s\n", strings.Join(parts, ", "), number(c.Records, "new record"), number(int(c.Messages), "message"))
	return err
}
