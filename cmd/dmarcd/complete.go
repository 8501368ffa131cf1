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
	"github.com/dmarcd/dmarcd/internal/config"
)

// completeTimeout is how long a person waits for the names of teams.
const completeTimeout = 2 * time.Second

// complete tells the shell what may follow a flag or a command. Where nothing is
// known it offers files only to what takes files.
func (p *program) complete(root *cobra.Command) {
	for _, s := range config.Settings() {
		switch {
		case len(s.Words) > 0:
			offer(root, s.Flag(), cobra.FixedCompletions(s.Words, cobra.ShellCompDirectiveNoFileComp))
		case s.Kind != "text": // a text may be the path of a file
			offer(root, s.Flag(), cobra.NoFileCompletions)
		}
	}
	offer(root, "config", cobra.FixedCompletions([]string{"toml", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	p.completeCommand(root)
}

// completeCommand is complete for the own flags and the arguments of a command and
// of all below it.
func (p *program) completeCommand(cmd *cobra.Command) {
	takesFiles := []string{"parse", "import", "backup"}
	if cmd.ValidArgsFunction == nil && !slices.Contains(takesFiles, cmd.Name()) {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	words := map[string][]string{
		"scope":    {string(dmarcd.ScopeRead), string(dmarcd.ScopeWrite)},
		"role":     {string(dmarcd.RoleOwner), string(dmarcd.RoleEditor), string(dmarcd.RoleViewer)},
		"kind":     convert(dmarcd.ReportKinds(), func(k dmarcd.ReportKind) string { return string(k) }),
		"security": {string(dmarcd.SecurityTLS), string(dmarcd.SecuritySTARTTLS), string(dmarcd.SecurityNone)},
		"after":    {string(dmarcd.AfterKeep), string(dmarcd.AfterFlag), string(dmarcd.AfterMove) + ":", string(dmarcd.AfterDelete)},
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "team":
			offer(cmd, f.Name, p.completeTeams)
		case words[f.Name] != nil:
			offer(cmd, f.Name, cobra.FixedCompletions(words[f.Name], cobra.ShellCompDirectiveNoFileComp))
		case !strings.HasSuffix(f.Name, "-file"):
			offer(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	for _, sub := range cmd.Commands() {
		p.completeCommand(sub)
	}
}

// offer has the shell ask f for the values of a flag.
func offer(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f) // the flag exists, and has none yet
}

// completeTeams offers the names of the teams. It makes no database, and changes none.
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
		return nil, nothing // an error would be taken for a name
	}
	return names, nothing
}
