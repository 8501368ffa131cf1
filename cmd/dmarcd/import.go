package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/service"
)

func (p *program) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --team NAME PATH...",
		Short: "Bring in reports from files, folders, mailboxes and archives",
		Long: `Reads the reports in files, in folders with all that is below them, in mbox files and
in Maildirs, in any container, and counts them. Reports that are known are recognised
and count once. What is no report is told on standard error and kept aside; see
"dmarcd report rejected".

An import that was interrupted goes on where it stopped if it is begun again with the
same paths; --all reads everything again.

0: all was read; 1: something was rejected; 2: a file could not be read.`,
		Example: `  dmarcd import --team acme old-reports
  dmarcd import --team acme --json archive.zip mail.mbox Maildir`,
		Args: cobra.MinimumNArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	all := cmd.Flags().Bool("all", false, "read again what an interrupted import has read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withTeam(cmd, func(cfg config.Config, t *service.Team) error {
			name := journalName(cmd.Flag("team").Value.String(), args)
			journal, err := openJournal(filepath.Join(cfg.Data, name), *all)
			if err != nil {
				return err
			}
			keeper, err := t.Import(importSource(args))
			if err != nil {
				return errors.Join(err, journal.Close())
			}
			run := &importing{program: p, json: *asJSON}
			return run.files(cmd.Context(), cfg, keeper, files.List(args...), journal)
		})
	}
	return cmd
}

// importSource says where an import is from, for the audit log.
func importSource(paths []string) string {
	if more := len(paths) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", paths[0], more)
	}
	return paths[0]
}

// importing is one run of an import.
type importing struct {
	*program

	json   bool
	counts importCounts
	unread int
	bar    func(bytes int)
}

// importCounts is what became of what was found.
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

func (r *importing) files(ctx context.Context, cfg config.Config, keeper intake.Keeper, listing files.Listing, journal *files.Journal) error {
	for _, err := range listing.Unread {
		r.cannot(err.Error())
	}
	bar, done := r.progressBytes(listing.Bytes, "importing")
	r.bar = bar
	r.counts.Files = len(listing.Files) + len(listing.Unread)
	importer := &files.Importer{Acceptor: app.NewAcceptor(cfg, r.logger(cfg.Log)), Keeper: keeper, Journal: journal, Tell: r.tell}
	err := importer.Run(ctx, listing.Files)
	done()
	if err != nil {
		err = fmt.Errorf("the import stopped, and goes on if it is begun again: %w", err)
		return errors.Join(err, journal.Close())
	}
	if err := journal.Remove(); err != nil {
		return err
	}
	if err := r.sum(); err != nil {
		return err
	}
	switch {
	case r.unread > 0:
		return fmt.Errorf("%d of %d files could not be read", r.unread, r.counts.Files)
	case r.counts.Rejected > 0:
		return errRefused
	}
	return nil
}

// journalName names the journal of an import after what is imported for whom.
func journalName(team string, paths []string) string {
	hash := sha256.New()
	_, _ = io.WriteString(hash, team) // a hash takes everything
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		_, _ = io.WriteString(hash, "\n"+path)
	}
	return "import-" + hex.EncodeToString(hash.Sum(nil)[:8]) + ".journal"
}

// openJournal opens a journal, or makes a new one for an import that is to read all.
func openJournal(path string, all bool) (*files.Journal, error) {
	// With PostgreSQL nothing may have needed the data folder yet.
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder (DMARCD_DATA names another): %w", err)
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

// tell counts what became of a file.
func (r *importing) tell(result files.Result) {
	r.bar(int(result.Bytes))
	switch {
	case result.Before:
		r.counts.Before++
	case errors.Is(result.Err, dmarcd.ErrLimit):
		r.counts.Rejected++
		r.say("%s\n", printable(result.Name+": "+result.Err.Error()))
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
	case dmarcd.Refused:
		c.Rejected++
	}
	if receipt.Reason != "" {
		where := name
		if receipt.Member != "" {
			where += ": " + receipt.Member
		}
		r.say("%s\n", printable(where+": "+receipt.Reason))
	}
	if receipt.Status != dmarcd.Duplicate {
		c.Records += receipt.Records
		c.Messages = dmarcd.AddCount(c.Messages, receipt.Messages)
	}
}

// cannot tells of something that could not be looked at.
func (r *importing) cannot(what string) {
	r.counts.Unreadable++
	r.unread++
	r.say("%s\n", printable(what))
}

// sum tells what the import came to.
func (r *importing) sum() error {
	c := r.counts
	if r.json {
		return printJSON(r.out, c)
	}
	parts := []string{number(c.Files-c.Before-c.Unreadable, "file") + " read"}
	for _, part := range []struct {
		n    int
		text string
	}{
		{c.Before, fmt.Sprintf("%d read before", c.Before)},
		{c.Stored, number(c.Stored, "report") + " stored"},
		{c.Replaced, fmt.Sprintf("%d replaced", c.Replaced)},
		{c.Duplicate, fmt.Sprintf("%d known already", c.Duplicate)},
		{c.Unclaimed, fmt.Sprintf("%d for no domain of the team", c.Unclaimed)},
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
