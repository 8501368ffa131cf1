package main

import (
	"context"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) mailboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mailbox",
		Short: "Manage IMAP mailboxes that reports are read from",
		Long: `Manages the IMAP mailboxes of a team. A running daemon starts to read a new mailbox
within seconds; "dmarcd mailbox list" shows the state.`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.mailboxAddCommand(), p.mailboxListCommand(), p.mailboxResumeCommand(), p.mailboxRemoveCommand())
	return cmd
}

func (p *program) mailboxListCommand() *cobra.Command {
	heading := []string{"ID", "SERVER", "USER", "FOLDER", "AFTER", "STATE", "LAST READ", "FAILED AT", "ERROR"}
	return teamList(p, &cobra.Command{
		Use:     "list --team NAME",
		Short:   "List the mailboxes of a team and their state",
		Example: "  dmarcd mailbox list --team acme --json",
	}, (*service.Team).Mailboxes, wire.NewMailbox, heading, func(m wire.Mailbox) []string {
		after := m.After
		if m.MoveTo != nil {
			after += ":" + *m.MoveTo
		}
		server := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
		return []string{m.ID, server, m.User, m.Folder, after, mailboxState(m), orDash(m.SeenAt), orDash(m.ErrorAt), orDash(m.Error)}
	})
}

// mailboxState returns the state of a mailbox in one word.
func mailboxState(m wire.Mailbox) string {
	switch {
	case m.PausedAt != nil:
		return "paused"
	case m.Error != nil:
		return "failing"
	case m.SeenAt == nil:
		return "new"
	}
	return "ok"
}

func (p *program) mailboxResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume ID",
		Short: "Resume a paused mailbox",
		Long: `Resumes a paused mailbox. The daemon pauses a mailbox when reading it has crashed
twice; the log shows the cause.`,
		Example: "  dmarcd mailbox resume box_1omg",
		Args:    cobra.ExactArgs(1),
		RunE:    p.changeMailbox((*service.Team).ResumeMailbox),
	}
}

func (p *program) mailboxRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a mailbox and delete its password",
		Long: `Stops reading a mailbox and deletes its password. The messages in the mailbox and
the reports from it are not deleted.`,
		Example: "  dmarcd mailbox remove box_1omg",
		Args:    cobra.ExactArgs(1),
		RunE:    p.changeMailbox((*service.Team).RemoveMailbox),
	}
}

// changeMailbox returns the RunE of a command that changes a mailbox by id.
func (p *program) changeMailbox(change func(*service.Team, context.Context, dmarcd.MailboxID) error) func(*cobra.Command, []string) error {
	return withItem(p, "mailbox", dmarcd.ParseMailboxID, (*service.System).TeamOfMailbox,
		func(cmd *cobra.Command, _ config.Config, t *service.Team, id dmarcd.MailboxID) error {
			return change(t, cmd.Context(), id)
		})
}
