package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/mcp"
	"github.com/dmarcd/dmarcd/internal/service"
)

func (p *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp --team NAME",
		Short: "Answer an assistant over the Model Context Protocol",
		Long: `Answers an assistant over the Model Context Protocol, on standard input and output. The assistant
starts the command. It reads the data of one team, and has no tools that change something
unless --write is given. docs/mcp.md lists the tools.

Assistants on other hosts use the daemon, at /mcp, with a token.`,
		Example: `  dmarcd mcp --team acme
  dmarcd mcp --team acme --write`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	write := cmd.Flags().Bool("write", false, "also offer the tools that change something")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withTeamOf(cmd, (*app.Installation).OpenInsight, func(cfg config.Config, t *service.Team) error {
			server, err := mcp.New(mcp.Options{BaseURL: cfg.BaseURL, ReportDomain: cfg.ReportDomain, Version: version, Log: p.logger(cfg.Log)})
			if err != nil {
				return err
			}
			return server.Run(cmd.Context(), t, *write, io.NopCloser(p.in), unclosed{p.out})
		})
	}
	return cmd
}

// unclosed is standard output, which stays open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
