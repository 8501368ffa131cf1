package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this installation for problems and show how to fix them",
		Long: `Checks the configuration, the data folder, the database, the teams and DNS. It changes
nothing.

Exit status: 0 if there are no problems; 1 if there are problems; 2 if a check could not
be completed.`,
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
			return errors.New("some checks could not be completed")
		case has(app.Sick):
			return errReported
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
		if d.Fix != "" {
			if _, err := fmt.Fprintf(p.out, "        -> %s\n", d.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
