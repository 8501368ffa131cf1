package app

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
)

// greet sees to it that somebody can use the API, and says how. A token that it
// makes is shown here once; a configured one is never shown.
func (a *App) greet(ctx context.Context) error {
	if configured := a.config.Token; configured != "" {
		return a.store.EnsureToken(ctx, auth.HashToken(configured))
	}
	token := auth.NewToken()
	made, err := a.store.FirstStart(ctx, auth.HashToken(token))
	if err != nil {
		return err
	}
	if !made {
		_, err = fmt.Fprintf(a.options.Out, "dmarcd serves %s (documentation: %s/docs).\n", a.config.BaseURL, a.config.BaseURL)
		return err
	}
	_, err = fmt.Fprintf(a.options.Out, `This is the first start. The team %q may use the API with this token, which is shown only now:

    %s

Keep it, and try it:

    export TOKEN=...the token above...
    curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \
        -d '{"domain": "example.com"}' %[3]s/domains
    curl -H "Authorization: Bearer $TOKEN" %[3]s/domains

Documentation: %[3]s/docs
`, dmarcd.DefaultTeam, token, a.config.BaseURL)
	return err
}
