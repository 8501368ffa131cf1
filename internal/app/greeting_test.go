package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

var linkForm = regexp.MustCompile(`(http://[^/\s]+)/app/invitation/([A-Z2-7]{26})`)

func TestFirstStartPrintsTheSignInLinkOnce(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"with a token of its own":    nil,
		"with a configured token":    {"DMARCD_TOKEN=" + auth.NewToken()},
		"with the API at its prefix": {"DMARCD_BASE_URL=http://dmarc.example/mail/dmarc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.SQLite(t)
			first := start(t, db, settings...)
			links := linkForm.FindAllStringSubmatch(first.out, -1)
			if len(links) != 1 || !strings.HasPrefix(first.url, links[0][1]+"/") {
				t.Fatalf("got the links %v at %s, want one to the same host:\n%s", links, first.url, first.out)
			}
			musttest.Do(t, first.stop())
			second := start(t, db, settings...)
			if linkForm.MatchString(second.out) {
				t.Errorf("the second start says:\n%s", second.out)
			}
			invitations := auth.Invitations{Store: db.Open(t, store.Options{}), Now: time.Now}
			invitation, err := invitations.Find(t.Context(), links[0][2])
			if err != nil || !invitation.Operator || invitation.Email != "" || invitation.Team == 0 {
				t.Errorf("the link leads to %+v, %v; want an operator and owner", invitation, err)
			}
			if log := first.log.String() + second.log.String(); strings.Contains(log, links[0][2]) {
				t.Error("the link is in the log")
			}
		})
	}
}

// TestDemoReportsThatItsLinkAsksForAPassword starts with an invitation, as the demo does.
func TestDemoReportsThatItsLinkAsksForAPassword(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	effective := musttest.Get(config.Load(config.Input{Environ: []string{"DMARCD_DATABASE=" + db.DSN, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0"}}))(t)
	secret, _ := auth.NewInvitation()
	var out bytes.Buffer
	a := musttest.Get(app.New(t.Context(), effective.Config, app.Options{
		Log: slog.New(slog.DiscardHandler), Out: &out, Invitation: app.Invitation{Secret: secret, For: "Ada", Token: "dmd_x"},
	}))(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	musttest.Do(t, a.Run(stopped))
	if got := out.String(); !strings.Contains(got, "as Ada. Choose a password there") || !strings.Contains(got, secret) || !strings.Contains(got, "Bearer dmd_x\" http") {
		t.Errorf("got %q, want the link, that a password must be chosen, and the token", got)
	}
}
