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

// maxSecretFile bounds what is read of a file with a password, in bytes.
const maxSecretFile = 64 << 10

// mailboxFlags are the flags of mailbox add.
type mailboxFlags struct {
	host, security, user, folder, after string
	port                                int
	passwordFile, oauthFile             string
	untried                             bool
}

func (p *program) mailboxAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add --team NAME --host HOST --user USER --password-file FILE",
		Short: "Read a mailbox from now on; tries the login first",
		Long: `Reads a mailbox from now on, all that lies in it and what comes. The login is tried
first. What is needed for it is sealed with the key in secret.file before it is
stored; "-" reads it from standard input, and asks for a password on a terminal.

    --password-file FILE    a file that holds the password alone
    --oauth-file FILE       for servers that want OAuth, as Microsoft 365 and Gmail do:
                            {"token_url": "https://...", "client_id": "...",
                             "client_secret": "...", "refresh_token": "...",
                             "scopes": ["..."]}
                            Without a refresh token the client logs in as itself.

Messages are marked as --after says once what they bring is stored: keep leaves
them as they are, flag marks them as seen, move:FOLDER moves them, and delete
deletes them for good.`,
		Example: `  dmarcd mailbox add --team acme --host imap.example.com --user dmarc@example.com --password-file -
  dmarcd mailbox add --team acme --host imap.example.com --user dmarc@example.com --password-file pw --after move:Done
  dmarcd mailbox add --team acme --host outlook.office365.com --user dmarc@example.com --oauth-file oauth.json`,
		Args: cobra.NoArgs,
	}
	teamFlag(cmd)
	var given mailboxFlags
	flags := cmd.Flags()
	flags.StringVar(&given.host, "host", "", "the mail server")
	flags.IntVar(&given.port, "port", 0, "its port (default: 993, or 143 without --security tls)")
	flags.StringVar(&given.security, "security", string(dmarcd.SecurityTLS), "tls, starttls or none")
	flags.StringVar(&given.user, "user", "", "the name to log in with")
	flags.StringVar(&given.passwordFile, "password-file", "", "the file with the password")
	flags.StringVar(&given.oauthFile, "oauth-file", "", "the file that says how access tokens are had")
	flags.StringVar(&given.folder, "folder", "INBOX", "the folder to read")
	flags.StringVar(&given.after, "after", string(dmarcd.AfterFlag), "what becomes of messages: keep, flag, move:FOLDER or delete")
	flags.BoolVar(&given.untried, "no-try", false, "do not try the login")
	_ = cmd.MarkFlagRequired("host") // the flags exist
	_ = cmd.MarkFlagRequired("user")
	cmd.MarkFlagsMutuallyExclusive("password-file", "oauth-file")
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

// mailbox returns what the flags describe.
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

// readCredentials reads the file that holds what to log in with.
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
		// The words of the error would show what is secret.
		return imap.Credentials{}, fmt.Errorf("%s does not hold the JSON that is wanted; see `dmarcd mailbox add --help`", given.oauthFile)
	}
	return credentials, credentials.Validate()
}

// readPassword asks a person at a terminal, without showing what they type.
func (p *program) readPassword(path string) ([]byte, error) {
	terminal, ok := p.in.(*os.File)
	if path != "-" || !ok || !isTerminal(terminal) {
		return p.readSecretFile(path)
	}
	p.say("Password: ")
	defer p.say("\n")
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
		err = fmt.Errorf("%s has more than %d bytes: that is no password", path, maxSecretFile)
	}
	return content, err
}

// addMailbox logs in to the mailbox, stores it if that works, and prints its id.
func (p *program) addMailbox(ctx context.Context, t *service.Team, wanted service.NewMailbox) error {
	added, err := t.AddMailbox(ctx, wanted)
	if failed := (*service.MailboxError)(nil); errors.As(err, &failed) {
		if errors.Is(failed.Reason, imap.ErrLogin) {
			p.say("%v; nothing was added\n", failed.Reason)
			return errRefused
		}
		return fmt.Errorf("%w; nothing was added, --no-try adds the mailbox all the same", failed.Reason)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, added.ID)
	return err
}
