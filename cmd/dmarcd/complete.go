package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/export"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// completeTimeout bounds the lookup of team names.
const completeTimeout = 2 * time.Second

// completeCommand registers shell completions for the arguments of a command and of its
// subcommands, and for their own flags. Files are offered only where files are expected.
func (p *program) completeCommand(cmd *cobra.Command) {
	takesFiles := []string{"parse", "import", "backup", "man"}
	if cmd.ValidArgsFunction == nil && !slices.Contains(takesFiles, cmd.Name()) {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	words := map[string][]string{
		"scope":    convert(dmarcd.Scopes(), func(s dmarcd.Scope) string { return string(s) }),
		"role":     {string(dmarcd.RoleOwner), string(dmarcd.RoleEditor), string(dmarcd.RoleViewer)},
		"kind":     convert(dmarcd.EventKinds(), func(k dmarcd.EventKind) string { return string(k) }),
		"security": {string(dmarcd.SecurityTLS), string(dmarcd.SecuritySTARTTLS), string(dmarcd.SecurityNone)},
		"format":   convert(dmarcd.WebhookFormats(), func(f dmarcd.WebhookFormat) string { return string(f) }),
		"after":    {string(dmarcd.AfterKeep), string(dmarcd.AfterFlag), string(dmarcd.AfterMove) + ":", string(dmarcd.AfterDelete)},
	}
	switch cmd.CommandPath() {
	case "dmarcd report list":
		words["kind"] = convert(dmarcd.ReportKinds(), func(k dmarcd.ReportKind) string { return string(k) })
		words["state"] = convert(dmarcd.ReportStates(), func(s dmarcd.ReportState) string { return string(s) })
	case "dmarcd advise", "dmarcd check", "dmarcd domain setup":
		words["format"] = recordfile.IDs()
	case "dmarcd export":
		words["format"] = convert(export.Formats(), func(f export.Format) string { return string(f) })
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "team":
			offer(cmd, f.Name, p.completeTeams)
		case words[f.Name] != nil:
			offer(cmd, f.Name, cobra.FixedCompletions(words[f.Name], cobra.ShellCompDirectiveNoFileComp))
			noteChoices(cmd, f.Name, words[f.Name])
		case f.Name != "output" && !strings.HasSuffix(f.Name, "-file"):
			offer(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	for _, sub := range cmd.Commands() {
		p.completeCommand(sub)
	}
}

// offer registers f as the completion of a flag.
func offer(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // the flag exists and has no completion yet
}

// completeTeams completes team names. It neither creates nor changes a database.
func (p *program) completeTeams(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	effective, err := p.configuration(cmd)
	if err != nil {
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	names, err := app.TeamNames(ctx, effective.Config)
	if err != nil {
		return nil, nothing // an error would be completed as a name
	}
	return names, nothing
}
