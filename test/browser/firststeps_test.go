package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

const password = "correct horse battery staple"

// acceptInvitation follows a one-time link and chooses a password.
func (b *tab) acceptInvitation(link, email string) {
	b.t.Helper()
	b.visit(link, http.StatusOK)
	b.write("email", email)
	b.write("password", password)
	b.press("Set password and sign in")
}

// signIn signs in with the password.
func (b *tab) signIn(email string) {
	b.t.Helper()
	b.visit("/app/sign-in", http.StatusOK)
	b.write("email", email)
	b.write("password", password)
	b.press("Sign in")
}

// signOut opens the menu and leaves.
func (b *tab) signOut() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
	b.press("Sign out")
}

func TestFirstSteps(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)

	b.visit("/", http.StatusOK)
	if got := b.path(); !strings.HasPrefix(got, "/app/sign-in") {
		t.Errorf("signed out: got %s want the sign-in page", got)
	}
	b.acceptInvitation(s.link, "ada@example.com")
	b.shows("Get started")
	b.inspect("the empty overview")
	b.trySample()
	for _, path := range []string{"/app/senders", "/app/reports", "/app/settings/mailboxes"} {
		b.visit(path, http.StatusOK)
		b.inspect("empty " + path)
	}
	b.signOut()
	b.visit(s.link, http.StatusNotFound)
	b.shows("This link cannot be used")

	// The sign-in leads to the page that was requested.
	b.visit("/app/settings/tokens", http.StatusOK)
	b.write("email", "ada@example.com")
	b.write("password", "another password")
	if got := b.load(chromedp.Click(chromedp.CSS("main button"))); got != http.StatusUnauthorized {
		t.Errorf("a wrong password: got status %d want 401", got)
	}
	b.shows("Incorrect email or password")
	b.inspect("a refused sign-in")
	b.write("password", password)
	b.press("Sign in")
	if got := b.path(); got != "/app/settings/tokens" {
		t.Errorf("after signing in: got %s want /app/settings/tokens", got)
	}

	b.follow("Overview")
	b.follow("Add domains")
	b.write("domain", "Example.COM")
	b.press("Add domains")
	b.followGuide()
}

// trySample adds sample data, opens pages of it, and removes it.
func (b *tab) trySample() {
	b.t.Helper()
	b.press("Add sample data")
	b.shows("These domains and their reports are fictional.")
	b.shows("brightpay.example")
	b.inspect("an overview of sample data")
	b.visit("/app/senders", http.StatusOK)
	b.shows("Cloudpost Mail Hosting")
	b.press("Remove sample data")
	b.shows("Get started")
	for _, path := range []string{"/app/senders", "/app/reports"} {
		b.visit(path, http.StatusOK)
		if got := b.text("main"); strings.Contains(got, ".example") || strings.Contains(got, "Cloudpost") {
			b.t.Errorf("%s after the removal: got %q, want nothing of the sample data", path, got)
		}
	}
	b.visit("/app/", http.StatusOK)
}

// guideLimit is how long the guide may take to see a record: it asks the server every
// 5 s, which queries the DNS every 10 s at most. The rest is for a busy machine.
const guideLimit = 10 * time.Minute

// step is what the guide shows of a record to publish.
type step struct{ Name, Type, Value, State string }

const readSteps = `[...document.querySelectorAll(".steps > li")].map((li) => {
	const facts = [...li.querySelectorAll("dd code")].map((code) => code.textContent);
	return { Name: facts[0] ?? "", Type: facts[1] ?? "", Value: facts[2] ?? "", State: li.querySelector(".badge").textContent };
})`

// followGuide publishes the records that the guide names, one after the other, sends a
// report, and wants the guide to see each of them without the page being loaded again.
func (b *tab) followGuide() {
	b.t.Helper()
	b.shows("The domain was added.")
	steps := read(b, evaluate[[]step](readSteps))
	var zone strings.Builder
	for i, record := range steps[:len(steps)-1] {
		if record.State == "seen" {
			b.t.Fatalf("%s: got it seen want it not yet", record.Name)
		}
		fmt.Fprintf(&zone, "%s. %s %q\n", record.Name, record.Type, record.Value)
		b.site.setZone(zone.String())
		b.awaitStep(i, "seen")
	}
	b.site.deliver(aggregateReport("example.com"))
	b.awaitStep(len(steps)-1, "received")
	if !b.has(".steps[data-complete]") {
		b.t.Error("every step was done: got no sign of it want the guide complete")
	}
}

// awaitStep waits until the guide says that a step is in a state.
func (b *tab) awaitStep(i int, want string) {
	b.t.Helper()
	daemon.Eventually(b.t, guideLimit, fmt.Sprintf("step %d of the guide is %s", i+1, want), func() bool {
		return read(b, evaluate[[]step](readSteps))[i].State == want
	})
}
