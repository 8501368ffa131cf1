package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (p *program) mailboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mailbox",
		Short: "Mailboxes elsewhere that reports are read from",
		Long: `Mailboxes elsewhere that reports are read from, by IMAP. A running daemon begins
to read one within seconds after it was added, and tells here how that goes.`,
		Args: noArguments,
		RunE: showHelp,
	}
	cmd.AddCommand(p.mailboxAddCommand(), p.mailboxListCommand(), p.mailboxRemoveCommand())
	return cmd
}

func (p *program) mailboxListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list --team NAME",
		Short:   "List the mailboxes of a team, and how reading them goes",
		Example: "  dmarcd mailbox list --team acme --json",
		Args:    cobra.NoArgs,
	}
	teamFlag(cmd)
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withTeam(cmd, func(_ config.Config, t *store.Team) error {
			mailboxes, err := t.Mailboxes(cmd.Context())
			if err != nil {
				return err
			}
			heading := []string{"ID", "SERVER", "USER", "FOLDER", "AFTER", "LAST LOOK", "FAILED AT", "ERROR"}
			return printList(p.out, *asJSON, convert(mailboxes, wire.NewMailbox), heading, func(m wire.Mailbox) []string {
				after := m.After
				if m.MoveTo != nil {
					after += ":" + *m.MoveTo
				}
				server := net.JoinHostPort(m.Host, strconv.Itoa(m.Port))
				return []string{m.ID, server, m.User, m.Folder, after, orDash(m.SeenAt), orDash(m.ErrorAt), orDash(m.Error)}
			})
		})
	}
	return cmd
}

func (p *program) mailboxRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "Read a mailbox no more, and forget its password",
		Long: `Reads a mailbox no more, and forgets its password. The mails in it and the
reports that it brought stay.`,
		Example: "  dmarcd mailbox remove box_1omg",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := dmarcd.ParseMailboxID(args[0])
			if err != nil {
				return err
			}
			return p.withStore(cmd, func(_ config.Config, s *store.Store) error {
				team, err := s.TeamOfMailbox(cmd.Context(), id)
				if err == nil {
					err = s.Team(team).RemoveMailbox(cmd.Context(), id)
				}
				if errors.Is(err, dmarcd.ErrNotFound) {
					return fmt.Errorf("there is no mailbox %s; `dmarcd mailbox list` shows a team's: %w", id, err)
				}
				if err != nil {
					return err
				}
				return writeDown(cmd.Context(), s.Team(team), "mailbox.remove", id.String(), "")
			})
		},
	}
}
