package browser_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// authenticator gives a tab a virtual authenticator, which verifies its user at once.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.t.Helper()
	musttest.Get(chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}))(b.t)
	added := musttest.Get(chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: "ctap2", Transport: "internal", HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	}))(b.t)
	return added.AuthenticatorID
}

// pressPasskey clicks a button that asks for a passkey, and wants a status of the next page.
func (b *tab) pressPasskey(button string, want int) {
	b.t.Helper()
	if got := b.load(chromedp.Click(`//button[normalize-space()="` + button + `"]`)); got != want {
		b.t.Fatalf("after a click on %q: got status %d want %d; the page says: %s", button, got, want, b.summary())
	}
}

// signedOut signs out, and shows the sign-in page.
func (b *tab) signedOut() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	b.press("Sign out")
}

// TestPasskey adds a passkey, signs in with it alone and after the password, proves with it, and removes it.
func TestPasskey(t *testing.T) {
	t.Parallel()
	s := serve(t, "", "DMARCD_LISTEN=localhost:0")
	_, port, err := net.SplitHostPort(s.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	s.origin = "http://localhost:" + port // a host name
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	phone := b.authenticator()
	b.visit("/app/account", http.StatusOK)
	b.shows("Your password is all that protects your account.")
	b.press("Add a passkey")
	b.inspect("a new passkey")
	b.write("name", "Phone")
	b.pressPasskey("Create the passkey", http.StatusOK)
	b.shows("Recovery codes")
	b.follow("I stored them")
	b.shows("Signing in needs a passkey. 10 recovery codes left.")
	b.shows("Phone")
	b.inspect("an account with a passkey")
	b.press("Add a passkey")
	b.do(chromedp.Click(`//button[normalize-space()="Create the passkey"]`), chromedp.WaitVisible(chromedp.CSS("p.problem")))
	b.shows("This device already has a passkey for your account.")

	b.signedOut()
	b.inspect("sign in with a passkey")
	b.pressPasskey("Sign in with a passkey", http.StatusOK)
	if got := b.path(); got != "/app/" {
		t.Errorf("after the passkey: got %s want the overview", got)
	}
	b.signedOut()
	b.write("email", "ada@example.com")
	b.write("password", password)
	b.press("Sign in")
	b.shows("Confirm that it is you")
	b.inspect("the second step with a passkey")
	b.pressPasskey("Use a passkey", http.StatusOK)
	if got := b.path(); got != "/app/" {
		t.Errorf("after the password and the passkey: got %s want the overview", got)
	}

	musttest.Get(s.db.SQL(t).ExecContext(t.Context(), "UPDATE sessions SET proved_at = 1"))(t)
	b.visit("/app/settings/tokens", http.StatusOK)
	b.write("name", "a script")
	b.pressPasskey("Create token", http.StatusForbidden)
	b.shows("Confirm that it is you")
	b.inspect("a proof by a passkey")
	b.pressPasskey("Use a passkey", http.StatusOK)
	if !tokenPattern.MatchString(b.text("main")) {
		t.Error("after the proof: got no token want it shown")
	}

	bogus := true
	forged := webauthn.SetResponseOverrideBitsParams{AuthenticatorID: phone, IsBogusSignature: &bogus}
	musttest.Get(chromedp.Call(b.ctx, webauthn.SetResponseOverrideBits, forged))(t)
	b.signedOut()
	b.pressPasskey("Sign in with a passkey", http.StatusUnauthorized)
	b.shows("The passkey was not accepted")
	musttest.Get(chromedp.Call(b.ctx, webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{AuthenticatorID: phone}))(t)
	b.pressPasskey("Sign in with a passkey", http.StatusOK)

	b.visit("/app/account", http.StatusOK)
	b.load(clickIn("Phone", "Remove"))
	b.shows("The passkey was removed.")
	b.signedOut()
	b.pressPasskey("Sign in with a passkey", http.StatusUnauthorized)
	b.shows("The passkey was not accepted")

	plain := s.open(t)
	off := emulation.SetScriptExecutionDisabledParams{Value: true}
	musttest.Get(chromedp.Call(plain.ctx, emulation.SetScriptExecutionDisabled, off))(t)
	plain.visit("/app/sign-in", http.StatusOK)
	plain.shows("A passkey needs JavaScript")
}

// TestPasskeyNeedsAHost asks at an address of digits, where browsers have no passkeys.
func TestPasskeyNeedsAHost(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	v := s.member(t, s.link, "ada@example.com")
	if body := v.get("/app/account").body; !strings.Contains(body, "Passkeys need a host name and HTTPS") || strings.Contains(body, "/app/account/passkeys/new") {
		t.Error("the account: got a button to add a passkey want the page to say why there is none")
	}
	if body := s.visitor(t).get("/app/sign-in").body; strings.Contains(body, "passkey") {
		t.Error("the sign-in page: got a button for passkeys want none")
	}
}
