package browser_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// errand is a tab in which a task is done, by the pointer or by the keyboard alone. It counts
// the clicks, or the keys that stand for them.
type errand struct {
	*tab
	keyboard bool
	clicks   int
}

// eachWay does a task twice, each time as a new owner of a new installation.
func eachWay(t *testing.T, task func(t *testing.T, e *errand)) {
	t.Helper()
	for name, keyboard := range map[string]bool{"pointer": false, "keyboard": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			b := s.open(t)
			b.acceptInvitation(s.link, "owner@example.com")
			b.visit("/app/", http.StatusOK)
			task(t, &errand{tab: b, keyboard: keyboard})
		})
	}
}

// reach moves the focus to an element by the Tab key.
func (e *errand) reach(selector string) {
	e.t.Helper()
	const most = 100
	for range most {
		e.do(chromedp.KeyEvent(kb.Tab))
		if read(e.tab, evaluate[bool](`document.activeElement.matches(`+quote(selector)+`)`)) {
			return
		}
	}
	e.t.Fatalf("%s: the Tab key does not reach %s", e.address(), selector)
}

// show clicks what changes the page.
func (e *errand) show(selector string) {
	e.t.Helper()
	e.clicks++
	if !e.keyboard {
		e.do(chromedp.Click(chromedp.CSS(selector)))
		return
	}
	e.reach(selector)
	e.do(chromedp.KeyEvent(kb.Enter))
}

// lead clicks what leads to another page.
func (e *errand) lead(selector string) {
	e.t.Helper()
	if !e.keyboard {
		e.clicks++
		e.click(selector)
		return
	}
	e.clicks++
	e.reach(selector)
	if got := e.load(chromedp.KeyEvent(kb.Enter)); got != http.StatusOK {
		e.t.Fatalf("after Enter on %s: got status %d, want 200; the page says: %s", selector, got, e.summary())
	}
}

// enter writes a text into a field, or chooses the option that begins with it.
func (e *errand) enter(name, text string) {
	e.t.Helper()
	selector := `main [name="` + name + `"]`
	switch {
	case e.keyboard:
		e.reach(selector)
		e.do(chromedp.KeyEvent(text))
	case e.has(selector + " option"):
		e.choose(name, text)
	default:
		e.write(name, text)
	}
}

// took wants the task to have taken that many clicks.
func (e *errand) took(want int) {
	e.t.Helper()
	if e.clicks != want {
		e.t.Errorf("got %d clicks, want %d", e.clicks, want)
	}
}

// TestTask08Invite invites an editor, who gets what the link promises.
func TestTask08Invite(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`/app/invitation/\w+`)
	eachWay(t, func(t *testing.T, e *errand) {
		e.show("details.menu > summary")
		e.lead(`details.menu a[href="/app/settings/members"]`)
		e.enter("email", "editor@example.com")
		e.enter("role", "editor")
		e.lead(`main form[action="/app/settings/members"] button`)
		e.took(3)
		e.shows("editor@example.com")

		invited := e.site.open(t)
		path := link.FindString(e.text("main"))
		invited.visit(path, http.StatusOK)
		invited.shows("You are invited to the team default as editor.")
		invited.acceptInvitation(path, "editor@example.com")
		invited.visit("/app/domains/new", http.StatusOK)
		invited.visit("/app/settings/audit", http.StatusForbidden)
	})
}

// TestTask09Token creates a token that may read and not write.
func TestTask09Token(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, e *errand) {
		e.show("details.menu > summary")
		e.lead(`details.menu a[href="/app/settings/tokens"]`)
		e.enter("name", "nightly export")
		e.lead(`main form[action="/app/settings/tokens"] button`)
		e.took(3)
		e.shows("nightly export")

		token := tokenPattern.FindString(e.text("main"))
		for method, want := range map[string]int{http.MethodGet: http.StatusOK, http.MethodPost: http.StatusForbidden} {
			r := musttest.Get(http.NewRequestWithContext(context.Background(), method, e.site.origin+"/api/domains", strings.NewReader(`{"domain":"example.com"}`)))(t)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(r)
			musttest.Do(t, err)
			_ = answer.Body.Close() // nothing of it is read
			if answer.StatusCode != want {
				t.Errorf("%s with the token: got status %d, want %d", method, answer.StatusCode, want)
			}
		}
	})
}
