package main

import (
	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/config"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the effective configuration and the origin of each value; secrets are masked",
		Example: `  dmarcd config
  dmarcd config --config /etc/dmarcd.toml --json`,
		Args: cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		effective, err := p.configuration(cmd)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(p.out, convert(effective.Values, func(v config.Value) map[string]string {
				return map[string]string{"key": v.Setting.Key, "value": v.Text, "origin": v.Origin, "environment": v.Setting.Env(), "help": v.Setting.Help}
			}))
		}
		return printTable(p.out, []string{"SETTING", "VALUE", "FROM", "ENVIRONMENT"}, convert(effective.Values, func(v config.Value) []string {
			return []string{v.Setting.Key, orDash(&v.Text), v.Origin, v.Setting.Env()}
		}))
	}
	return cmd
}
