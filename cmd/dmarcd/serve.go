package main

import (
	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: API, web page, ways in for reports, schedule of checks",
		Long: `Runs the daemon until it gets SIGTERM or SIGINT, which it answers by letting
requests end (10 s at most).

Where there is no team yet, it makes the team "default", puts it on the API
whitelist and prints a token for it, once. With DMARCD_TOKEN set, that is the
token instead; it is not printed, and is made sure of at every start. Where there is
no user yet, it prints a link that makes the first one.`,
		Example: `  dmarcd serve
  dmarcd serve --listen :8080 --base-url https://dmarc.example.com/api
  dmarcd serve --smtp-listen :25 --report-domain reports.example.com
  dmarcd serve --config /etc/dmarcd.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.configuration(cmd)
			if err != nil {
				return err
			}
			cfg := effective.Config
			log := p.logger(cfg.Log)
			daemon, err := app.New(cmd.Context(), cfg, app.Options{Log: log, Out: p.out, Version: version})
			if err != nil {
				return err
			}
			return daemon.Run(cmd.Context())
		},
	}
}
