package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
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

// maxSecretFile bounds credential files, in bytes.
const maxSecretFile = 64 << 10

type mailboxFlags struct {
	host, security, user, folder, after string
	port                                int
	passwordFile, oauthFile             string
	untried                             bool
}

func (p *program) mailboxAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME --host HOST --user USER --password-file FILE",
		Short: "Add a mailbox after a test login",
		Long: `Adds a mailbox. The daemon reads its existing and new messages. The command tests the
login first. It encrypts the credentials with the key in secret.file. The file name "-"
reads standard input, or prompts for the password on a terminal.

    --password-file FILE    a file that contains only the password
    --oauth-file FILE       for servers that require OAuth, such as Microsoft 365 and Gmail:
                            {"token_url": "https://...", "client_id": "...",
                             "client_secret": "...", "refresh_token": "...",
                             "scopes": ["..."]}
                            Without a refresh token, client credentials are used.

--after selects what happens to a message once its reports are stored: keep leaves it
unchanged, flag marks it as seen, move:FOLDER moves it, and delete deletes it permanently.`,
		Example: `  dmarcd mailbox add --team acme --host imap.example.com --user dmarc@example.com --password-file -
  dmarcd mailbox add --team acme --host imap.example.com --user dmarc@example.com --password-file pw --after move:Done
  dmarcd mailbox add --team acme --host outlook.office365.com --user dmarc@example.com --oauth-file oauth.json`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	var given mailboxFlags
	flags := cmd.Flags()
	flags.StringVar(&given.host, "host", "", "mail server")
	flags.IntVar(&given.port, "port", 0, "port (default: 993, or 143 without --security tls)")
	flags.StringVar(&given.security, "security", string(dmarcd.SecurityTLS), "tls, starttls or none")
	flags.StringVar(&given.user, "user", "", "login name")
	flags.StringVar(&given.passwordFile, "password-file", "", "file with the password")
	flags.StringVar(&given.oauthFile, "oauth-file", "", "file with the OAuth settings")
	flags.StringVar(&given.folder, "folder", "INBOX", "folder to read")
	flags.StringVar(&given.after, "after", string(dmarcd.AfterFlag), "what to do with processed messages: keep, flag, move:FOLDER or delete")
	flags.BoolVar(&given.untried, "no-try", false, "skip the test login")
	_ = cmd.MarkFlagRequired("host") // the flags exist
	_ = cmd.MarkFlagRequired("user")
	onlyOne(cmd, "password-file", "oauth-file")
	cmd.MarkFlagsOneRequired("password-file", "oauth-file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		credentials, err := p.readCredentials(given)
		if err != nil {
			return err
		}
		mailbox := given.mailbox(credentials.Method())
		if err := mailbox.Validate(); err != nil {
			return wrongUsage(err)
		}
		return p.withTeam(cmd, func(_ config.Config, t *service.Team) error {
			return p.addMailbox(cmd.Context(), t, service.NewMailbox{Mailbox: mailbox, Secret: credentials.Encode(), Untried: given.untried})
		})
	}
	return cmd
}

// mailbox converts the flags.
func (f mailboxFlags) mailbox(method dmarcd.LoginMethod) dmarcd.Mailbox {
	after, moveTo, _ := strings.Cut(f.after, ":")
	m := dmarcd.Mailbox{
		Host: f.host, Port: f.port, Security: dmarcd.Security(f.security), Username: f.user, Method: method,
		Folder: f.folder, After: dmarcd.AfterReading(after), MoveTo: moveTo,
	}
	if m.Port == 0 {
		m.Port = m.Security.Port()
	}
	return m
}

// readCredentials reads the password or OAuth file.
func (p *program) readCredentials(given mailboxFlags) (imap.Credentials, error) {
	if given.oauthFile == "" {
		password, err := p.readPassword(given.passwordFile)
		credentials := imap.Credentials{Password: strings.TrimRight(string(password), "\r\n")}
		if err == nil {
			err = credentials.Validate()
		}
		return credentials, err
	}
	content, err := p.readSecretFile(given.oauthFile)
	if err != nil {
		return imap.Credentials{}, err
	}
	credentials := imap.Credentials{OAuth: new(imap.OAuth)}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(credentials.OAuth); err != nil {
		// The original error may contain secrets.
		return imap.Credentials{}, fmt.Errorf("%s does not contain valid OAuth settings; see `dmarcd mailbox add --help`", given.oauthFile)
	}
	return credentials, credentials.Validate()
}

// readPassword reads a password file, or prompts on a terminal without echo.
func (p *program) readPassword(path string) ([]byte, error) {
	terminal, ok := p.in.(*os.File)
	if path != "-" || !ok || !isTerminal(terminal) {
		return p.readSecretFile(path)
	}
	p.notify("Password: ")
	defer p.notify("\n")
	return term.ReadPassword(int(terminal.Fd()))
}

func (p *program) readSecretFile(path string) ([]byte, error) {
	from := p.in
	if path != "-" {
		file, err := os.Open(path) //nolint:gosec // the operator's own path
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // read-only
		from = file
	}
	content, err := io.ReadAll(io.LimitReader(from, maxSecretFile+1))
	if err == nil && len(content) > maxSecretFile {
		err = fmt.Errorf("%s is longer than %d bytes, which is not a password", path, maxSecretFile)
	}
	return content, err
}

// addMailbox adds the mailbox after a test login and prints its id.
func (p *program) addMailbox(ctx context.Context, t *service.Team, wanted service.NewMailbox) error {
	added, err := t.AddMailbox(ctx, wanted)
	if failed := (*service.MailboxError)(nil); errors.As(err, &failed) {
		if errors.Is(failed.Reason, imap.ErrLogin) {
			p.notify("%s (%v); the mailbox was not added\n", failed.Message, failed.Reason)
			return errReported
		}
		return fmt.Errorf("%s (%w); the mailbox was not added (--no-try skips this test)", failed.Message, failed.Reason)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, added.ID)
	return err
}
