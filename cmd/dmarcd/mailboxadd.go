package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/intake/imap"
	"github.com/dmarcd/dmarcd/internal/service"
)

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
			p.notify("%v; the mailbox was not added\n", failed.Reason)
			return errReported
		}
		return fmt.Errorf("%w; the mailbox was not added (--no-try skips this test)", failed.Reason)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, added.ID)
	return err
}
