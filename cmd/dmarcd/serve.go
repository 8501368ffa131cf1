package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

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
			if err != nil && cmd.Context().Err() != nil {
				return nil //nolint:nilerr // it was stopped while it waited for the database
			}
			if err != nil {
				return err
			}
			return daemon.Run(cmd.Context())
		},
	}
}

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run a demo with two teams and a year of sample reports",
		Long: `Generates a year of reports about six domains and serves them: a well-configured one,
one with problems, a parked one, a spoofed one, one that moves from p=none to p=reject,
and a new one in a second team. The demo uses a temporary folder, which it deletes when
it ends, and its own DNS server. It has no other effects; the mailbox it shows is not read.`,
		Example: `  dmarcd demo
  dmarcd demo --listen 127.0.0.1:9090`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			effective, err := p.configuration(cmd)
			if err != nil {
				return err
			}
			return p.serveDemo(cmd.Context(), effective.Config)
		},
	}
}

func (p *program) serveDemo(ctx context.Context, cfg config.Config) (err error) {
	if cfg.Data, err = os.MkdirTemp("", "dmarcd-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.Data)) }()
	const steps = 1000
	bar, done := p.progress(steps, 0, "generating a year of reports")
	shown := 0
	const gcPercent = 400 // generating makes much garbage, and keeps little
	before := debug.SetGCPercent(gcPercent)
	demo, err := app.NewDemo(ctx, cfg, func(share float64) {
		now := int(share * steps)
		bar(now - shown)
		shown = now
	})
	done()
	debug.SetGCPercent(before)
	if err != nil {
		return fmt.Errorf("generate the sample teams: %w", err)
	}
	daemon, err := app.New(ctx, demo.Config, app.Options{
		Log: p.logger(demo.Config.Log), Out: p.out, Version: version, Invitation: demo.Invitation, Demo: true,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return demo.Run(ctx) })
	group.Go(func() error { return daemon.Run(ctx) })
	return group.Wait()
}
