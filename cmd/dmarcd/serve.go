package main

import (
	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/trace"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: API, web interface, report intake and scheduled checks",
		Long: `Runs the daemon until it receives SIGTERM or SIGINT. It then lets requests finish for
up to 10 s.

If there is no team, it creates the team "default", adds it to the API whitelist and
prints a token for it once. If DMARCD_TOKEN is set, that is the token instead; it is not
printed, and every start makes sure that it is valid. If there is no user, it prints a
sign-up link for the first one.`,
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
			for _, unknown := range config.UnknownEnvironment(p.environ) {
				log.Warn("unknown environment variable has no effect", "name", unknown.Name, "did_you_mean", unknown.Nearest)
			}
			traces, ignored, err := trace.FromEnvironment(p.environ)
			if err != nil {
				return err
			}
			for _, name := range ignored {
				log.Warn("unknown environment variable has no effect", "name", name, "did_you_mean", "")
			}
			daemon, err := app.New(cmd.Context(), cfg, app.Options{Log: log, Out: p.out, Version: version, Trace: traces})
			if err != nil {
				return err
			}
			return daemon.Run(cmd.Context())
		},
	}
}
