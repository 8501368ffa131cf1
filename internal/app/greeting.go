package app

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/web"
)

// greet makes sure that the API and the web interface can be used, and prints how. A new token
// or link is shown only here; a configured token is never shown.
func (a *App) greet(ctx context.Context) error {
	token, err := a.firstToken(ctx)
	if err != nil {
		return err
	}
	link, err := a.firstLink(ctx)
	if err != nil {
		return err
	}
	switch {
	case token != "":
		err = a.print(`This is the first start. The team %q can use the API with this token, which is not shown again.
Save it, and try it:

    export TOKEN=%s
    curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
        -d '{"domain": "example.com"}' %[3]s/domains
    curl -H "Authorization: Bearer $TOKEN" %[3]s/domains

Documentation: %[3]s/docs
`, dmarcd.DefaultTeam, token, a.config.BaseURL)
	case a.config.Token == "":
		err = a.print("dmarcd serves the API at %s (documentation: %[1]s/docs), and the web interface under %[2]s/.\n", a.config.BaseURL, web.Prefix)
	}
	if err != nil || link == "" {
		return err
	}
	if whom := a.options.Invitation.For; whom != "" {
		return a.print("\nThis link opens the web interface as %s. Choose a password there, and you are signed in. The link can be used once:\n\n    %s\n", whom, link)
	}
	return a.print(`
There are no users yet. This link creates the first one. It can be used once, within %d days:

    %s
`, int(dmarcd.InvitationLife.Hours()/24), link)
}

func (a *App) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.options.Out, format, args...)
	return err
}

// firstToken makes sure that there is a team with a token. It returns the token if it is new,
// else "".
func (a *App) firstToken(ctx context.Context) (string, error) {
	if configured := a.config.Token; configured != "" {
		return "", a.store.EnsureToken(ctx, auth.HashToken(configured))
	}
	token := auth.NewToken()
	made, err := a.store.FirstStart(ctx, auth.HashToken(token))
	if err != nil || !made {
		return "", err
	}
	return token, nil
}

// firstLink returns the sign-in link of the first user, or "" if there is a user or an open
// invitation.
func (a *App) firstLink(ctx context.Context) (string, error) {
	if secret := a.options.Invitation.Secret; secret != "" {
		return auth.InvitationLink(a.config.BaseURL, secret)
	}
	secret, hash := auth.NewInvitation()
	made, err := a.store.FirstInvitation(ctx, hash)
	if err != nil || !made {
		return "", err
	}
	return auth.InvitationLink(a.config.BaseURL, secret)
}
