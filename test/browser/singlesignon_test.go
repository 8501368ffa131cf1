package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/oidc"
)

func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	provider := oidc.Start(t, oidc.Options{Accounts: []oidc.Account{
		{Subject: "ada", Email: "ada@example.com", Verified: true, Name: "Ada Example"},
		{Subject: "mallory", Email: "mallory@example.net", Verified: true, Name: "Mallory"},
		{Subject: "liar", Email: "ada@example.com", Verified: false, Name: "A Liar"},
	}})
	s := serve(t, "",
		"DMARCD_OIDC_ISSUER="+provider.Issuer, "DMARCD_OIDC_CLIENT_ID="+provider.ClientID,
		"DMARCD_OIDC_CLIENT_SECRET="+provider.ClientSecret,
	)
	s.invite("ada@example.com", "default", "editor")
	for _, row := range []struct {
		account string
		status  int
		says    string
	}{
		{"ada", http.StatusOK, "Settings"},
		{"mallory", http.StatusForbidden, "You have not been invited"},
		{"liar", http.StatusForbidden, "Your email address is not verified"},
		{"unknown", http.StatusUnauthorized, "The sign-in was not completed"},
	} {
		t.Run(row.account, func(t *testing.T) {
			b := s.open(t, strings.TrimPrefix(provider.Issuer, "http://"))
			b.visit("/app/settings/tokens", http.StatusOK)
			b.follow("Sign in with single sign-on")
			b.do(chromedp.SendKeys(chromedp.CSS("input[name=account]"), row.account))
			if got := b.load(chromedp.Click(chromedp.CSS("button"))); got != row.status {
				t.Errorf("got status %d want %d", got, row.status)
			}
			b.says(row.says)
			if signedIn := row.status == http.StatusOK; signedIn && b.path() != "/app/settings/tokens" {
				t.Errorf("got %s want the page that was asked for", b.path())
			}
			if row.status == http.StatusOK {
				b.visit("/app/account", http.StatusOK)
				b.says("You sign in with single sign-on, and have no password here.")
				if b.has(`main input[type="password"]`) {
					t.Error("got a form for a password want none")
				}
			}
		})
	}
}
