package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) selfTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "selftest --team NAME DOMAIN",
		Short: "Send a synthetic report to a domain, and print each stage of its path",
		Long: `Sends a synthetic report to the reporting address of a domain, as a receiver would: it looks
up the mail servers, connects by SMTP, and follows the message until its report is stored.
The report has no messages, so it counts nowhere, and is deleted. The daemon must run.`,
		Example: "  dmarcd selftest --team acme example.com",
		Args:    cobra.ExactArgs(1),
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.withDomain(cmd, args[0], func(_ config.Config, t *service.Team, name string) error {
			test, err := t.SelfTest(cmd.Context(), name)
			if err != nil {
				return err
			}
			shape := wire.NewSelfTest(test)
			if *asJSON {
				err = printJSON(p.out, shape)
			}
			for i := 0; i < len(shape.Stages) && err == nil && !*asJSON; i++ {
				stage, result := shape.Stages[i], "failed"
				if stage.Passed {
					result = "passed"
				}
				_, err = fmt.Fprintf(p.out, "%-12s  %s  %6d ms  %s\n", stage.Name, result, stage.DurationMS, stage.Detail)
			}
			if err == nil && !test.Passed() {
				err = errReported
			}
			return err
		})
	}
	return cmd
}
