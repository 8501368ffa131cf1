package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
)

func (p *program) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Serve two sample teams with a year of reports",
		Long: `Makes up a year of reports about six domains and serves them: one that does everything
right, one in trouble, one that is parked, one that is spoofed, one on its way from none
to reject, and a new one in a team of its own. It lives in a folder for temporary files,
which goes when it ends, asks a DNS of its own, and touches nothing else: the mailbox that
it shows is never read.`,
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
	bar, done := p.progress(steps, 0, "making up a year of reports")
	told := 0
	demo, err := app.NewDemo(ctx, cfg, func(share float64) {
		now := int(share * steps)
		bar(now - told)
		told = now
	})
	done()
	if err != nil {
		return fmt.Errorf("make up the sample teams: %w", err)
	}
	daemon, err := app.New(ctx, demo.Config, app.Options{
		Log: p.logger(demo.Config.Log), Out: p.out, Version: version, Known: demo.Known, Invite: demo.Invite,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return demo.Run(ctx) })
	group.Go(func() error { return daemon.Run(ctx) })
	return group.Wait()
}
