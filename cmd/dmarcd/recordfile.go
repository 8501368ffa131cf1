package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// recordFlags are the flags of commands that print records as a file.
type recordFlags struct{ format, zone string }

// addTo adds the flags to a command. They exclude its flags others, which select another output.
func (f *recordFlags) addTo(cmd *cobra.Command, others ...string) {
	cmd.Flags().StringVar(&f.format, "format", "", "print the records as a file: "+strings.Join(recordfile.IDs(), ", "))
	cmd.Flags().StringVar(&f.zone, "origin", "", "zone of the file (default: the zone of the domain)")
	for _, other := range others {
		onlyOne(cmd, "format", other)
	}
}

// parse validates the flags, and reports whether a file is asked for.
func (f *recordFlags) parse() (asked bool, err error) {
	if f.format == "" {
		if f.zone != "" {
			err = errors.New("--origin needs --format")
		}
		return false, err
	}
	if f.zone != "" {
		if f.zone, err = dmarcd.ParseName(f.zone); err != nil {
			return false, wrongUsage(err)
		}
	}
	if _, err = recordfile.Parse(f.format); err != nil {
		err = wrongUsage(err)
	}
	return true, err
}

// printText returns a function that prints a text, unless there was an error.
func printText(out io.Writer) func(text string, err error) error {
	return func(text string, err error) error {
		if err == nil {
			_, err = io.WriteString(out, text)
		}
		return err
	}
}

// checkFiles prints the records that the findings of checks propose.
type checkFiles struct {
	out    io.Writer
	format recordfile.Format
	zone   string
}

func (c *checkFiles) print(check facts.Check) error {
	records := check.DNSRecords()
	if !check.Conclusive || len(records) == 0 {
		return nil
	}
	zone := c.zone
	if zone == "" {
		zone = recordfile.Zone(check.Facts.Domain, check.Facts.DNSSEC.Zone)
	}
	text, err := c.format.File(zone, records)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.out, text)
	return err
}

func (c *checkFiles) end() error { return nil }

func (p *program) domainSetupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "setup --team NAME DOMAIN",
		Short: "Print the records to publish so that reports about a domain arrive here",
		Long: `Prints the records to publish, and whether the latest check found them. With --format it prints a
file for the tool that manages the zone. The record that authorizes reports is in the zone of the
report domain: select it with --origin.`,
		Example: `  dmarcd domain setup --team acme example.com
  dmarcd domain setup --team acme --format bind example.com
  dmarcd domain setup --team acme --format octodns --origin reports.example.net example.com`,
		Args: cobra.ExactArgs(1),
	}
	apiFlags(cmd)
	asJSON := jsonFlag(cmd)
	var flags recordFlags
	flags.addTo(cmd, "json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := flags.parse()
		if err != nil {
			return err
		}
		return p.withDomain(cmd, args[0], func(c *client.Client, name string) error {
			if asked {
				return printText(p.out)(c.GetSetupFile(cmd.Context(), name, flags.format, flags.zone))
			}
			setup, err := c.GetSetup(cmd.Context(), name)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(p.out, setup)
			}
			return printList(p.out, false, setup.Records, []string{"NAME", "TYPE", "SEEN", "VALUE"}, func(r client.SetupRecord) []string {
				seen := "-"
				if r.Seen != nil {
					seen = yesNo(*r.Seen)
				}
				return []string{r.Name, r.Type, seen, r.Value}
			})
		})
	}
	return cmd
}
