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
)

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
