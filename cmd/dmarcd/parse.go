package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/intake"
)

// parseForms are the flags that choose a form of output.
type parseForms struct{ json, csv, summary bool }

func (p *program) parseCommand() *cobra.Command {
	var forms parseForms
	cmd := &cobra.Command{
		Use:   "parse FILE...",
		Short: "Read reports of any kind and container, and show what they say",
		Long: `Reads aggregate, failure and TLS reports: bare, in gzip, zip, mails or mailboxes, or
in several of these. It needs neither a database nor a server. The argument - reads
standard input. Local parts of addresses in failure reports are hidden. The limits of
the configuration hold: see limit.upload and its neighbours in "dmarcd config".

--json prints an array of reports with their records. --csv prints a row for each
record, and a TLS policy's successes and failures as rows of their own; a text that
a spreadsheet would take for a formula begins with '. --summary prints a line for each
report: file, kind, organization, report id, domain, begin, end, records, messages and
compliant messages, with tabs between; times are seconds since 1970, and of a TLS
report the policies and sessions are counted.

0: all was read; 1: something is no report, told on standard error; 2: a file could
not be read at all.`,
		Example: `  dmarcd parse report.xml.gz mailbox.mbox
  dmarcd parse --csv reports/*.zip > records.csv
  dmarcd parse --json - < mail.eml
  dmarcd parse --limit-upload 1000000000 years.mbox`,
		Args: cobra.MinimumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&forms.json, "json", false, "print JSON for machines")
	flags.BoolVar(&forms.csv, "csv", false, "print a row for each record")
	flags.BoolVar(&forms.summary, "summary", false, "print a line for each report")
	cmd.MarkFlagsMutuallyExclusive("json", "csv", "summary")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		return p.parseFiles(cmd.Context(), args, app.Limits(effective.Config), forms)
	}
	return cmd
}

// reportTeller tells reports one after the other. An item is never a refused one.
type reportTeller interface {
	tell(ctx context.Context, file string, item *intake.Item) error
	end() error
}

func (p *program) reportTeller(out io.Writer, forms parseForms) reportTeller {
	switch {
	case forms.json:
		return &jsonReports{out: out}
	case forms.csv:
		return newCSVReports(out)
	case forms.summary:
		return &reportLines{out: out}
	default:
		return &reportPages{page: &checkPage{out: out, colours: p.colours()}}
	}
}

// parseFiles tells the reports in the files.
func (p *program) parseFiles(ctx context.Context, files []string, limits intake.Limits, forms parseForms) error {
	out := bufio.NewWriter(p.out)
	parsing := &parsing{program: p, limits: limits, teller: p.reportTeller(out, forms)}
	for _, file := range files {
		if err := parsing.file(ctx, file); err != nil {
			return errors.Join(err, out.Flush())
		}
		// What was told of a file stands before what is said of the next.
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if err := errors.Join(parsing.teller.end(), out.Flush()); err != nil {
		return err
	}
	switch {
	case parsing.unread > 0:
		return fmt.Errorf("%d of %d files could not be read", parsing.unread, len(files))
	case parsing.refused > 0:
		return errRefused
	}
	return nil
}

// parsing is one run through the files.
type parsing struct {
	*program

	limits  intake.Limits
	teller  reportTeller
	unread  int // files that could not be looked at
	refused int // things that are no report
}

// file tells the reports in one file, and says what is refused. It returns only
// errors that leave no sense in going on.
func (p *parsing) file(ctx context.Context, name string) error {
	in, done, err := p.open(name)
	if err != nil {
		p.say("%s\n", printable(err.Error()))
		p.unread++
		return nil
	}
	defer done()
	var broken error
	err = intake.Read(ctx, in, p.limits, func(item *intake.Item) error {
		if item.Err != nil {
			p.refuse(name, item.Path, item.Err)
		} else {
			broken = p.teller.tell(ctx, name, item)
		}
		return broken
	})
	switch {
	case broken != nil:
		return broken
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, dmarcd.ErrLimit):
		p.refuse(name, "", err)
	case err != nil:
		p.say("%s\n", printable(name+": "+err.Error()))
		p.unread++
	}
	return nil
}

// refuse says in one line what is no report, and why.
func (p *parsing) refuse(file, path string, reason error) {
	where := file
	if path != "" {
		where += ": " + path
	}
	p.say("%s\n", printable(where+": "+reason.Error()))
	p.refused++
}

// open opens a file for reading. A regular file can be read at any offset, so that
// no copy of an archive is made.
func (p *parsing) open(name string) (in io.Reader, done func(), err error) {
	if name == "-" {
		return p.in, func() {}, nil
	}
	file, err := os.Open(name) //nolint:gosec // naming files is what the arguments are for
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = file.Close() } // read-only
	info, err := file.Stat()
	switch {
	case err != nil:
		done()
		return nil, nil, err
	case info.IsDir():
		done()
		return nil, nil, fmt.Errorf("%s: is a folder; parse takes files", name)
	case info.Mode().IsRegular():
		return io.NewSectionReader(file, 0, info.Size()), done, nil
	}
	return file, done, nil
}
