package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with this installation and how to mend it",
		Long: `Looks at the configuration, the data folder, the database, the teams and the
DNS, and changes nothing. 0: all well; 1: something is bad; 2: something could
not be looked at.`,
		Example: `  dmarcd doctor
  dmarcd doctor --config /etc/dmarcd.toml --json`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		found := app.Diagnose(cmd.Context(), effective.Config, p.environ)
		if *asJSON {
			err = printJSON(p.out, found)
		} else {
			err = p.printDiagnoses(found)
		}
		has := func(state app.DiagnosisState) bool {
			return slices.ContainsFunc(found, func(d app.Diagnosis) bool { return d.State == state })
		}
		switch {
		case err != nil:
			return err
		case has(app.Unseen):
			return fmt.Errorf("not everything could be looked at")
		case has(app.Sick):
			return errRefused
		}
		return nil
	}
	return cmd
}

func (p *program) printDiagnoses(found []app.Diagnosis) error {
	for _, d := range found {
		if _, err := fmt.Fprintf(p.out, "%-7s %s: %s\n", d.State, d.Part, d.What); err != nil {
			return err
		}
		if d.Mend != "" {
			if _, err := fmt.Fprintf(p.out, "        -> %s\n", d.Mend); err != nil {
				return err
			}
		}
	}
	return nil
}
