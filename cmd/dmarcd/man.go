package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (p *program) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages of all commands into a folder",
		Example: "  dmarcd man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // for others to read
				return err
			}
			return writeManuals(cmd.Root(), args[0])
		},
	}
}

// writeManuals writes the manual pages of a command and of its subcommands.
func writeManuals(cmd *cobra.Command, folder string) error {
	file := filepath.Join(folder, manualName(cmd)+".1")
	if err := os.WriteFile(file, []byte(manual(cmd)), 0o644); err != nil { //nolint:gosec // for others to read
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writeManuals(sub, folder); err != nil {
			return err
		}
	}
	return nil
}

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual returns the manual page of a command in the man macros of roff (man(7)).
func manual(cmd *cobra.Command) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	block := func(text string) { line(".PP\n.nf\n%s\n.fi", roff(text)) }
	line(`.TH "%s" 1 "" "dmarcd %s"`, roff(strings.ToUpper(manualName(cmd))), roff(version))
	line(".SH NAME\n%s \\- %s", roff(manualName(cmd)), roff(cmd.Short))
	line(".SH SYNOPSIS\n.B %s", roff(cmd.UseLine()))
	if cmd.Long != "" {
		line(".SH DESCRIPTION")
		for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
			if strings.HasPrefix(paragraph, "    ") {
				block(paragraph)
			} else {
				line(".PP\n%s", roff(paragraph))
			}
		}
	}
	options := func(title string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		line(".SH %s", title)
		flags.VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			option := "--" + f.Name
			if f.Shorthand != "" {
				option = "-" + f.Shorthand + ", " + option
			}
			line(".TP\n.B %s\n%s", roff(strings.TrimSpace(option+" "+name)), roff(usage))
		})
	}
	options("OPTIONS", cmd.NonInheritedFlags())
	options("COMMON OPTIONS", cmd.InheritedFlags())
	if cmd.Example != "" {
		line(".SH EXAMPLES")
		block(cmd.Example)
	}
	line(".SH EXIT STATUS\n0: success. 1: problems found, or input rejected. 2: wrong usage, an incomplete check or another failure.")
	var also []string
	if cmd.HasParent() {
		also = append(also, manualName(cmd.Parent()))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, manualName(sub))
		}
	}
	if len(also) > 0 {
		line(".SH SEE ALSO")
		line("%s", strings.Join(convert(also, func(name string) string { return ".BR " + roff(name) + " (1)" }), "\n"))
	}
	return b.String()
}

// roff escapes a text. A line must not begin with a control character.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
