package browser_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	// stepLimit is how long one step in the browser may take.
	stepLimit = 10 * time.Minute
	// wideWidth and wideHeight are the size of a desktop tab.
	wideWidth, wideHeight = 1280, 900
)

// tab is one person's browser: a tab with cookies of its own.
type tab struct {
	t     *testing.T
	site  *site
	ctx   context.Context //nolint:containedctx // it is the tab, as chromedp has it
	watch *watch
}

// open opens a tab for a new visitor. Hosts are those, beside
// the site's, that its pages may lead to.
func (s *site) open(t *testing.T, hosts ...string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	tab := &tab{t: t, site: s, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		end()
		t.Fatalf("open a tab: %v", err)
	}
	tab.watch = watchTab(ctx, append(hosts, strings.TrimPrefix(s.origin, "http://")))
	t.Cleanup(func() {
		tab.finish()
		end()
		tab.watch.wait()
	})
	return tab
}

// do runs steps, each in time.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, step := range steps {
		read(b, step)
	}
}

// read runs a step and returns its value.
func read[T any](b *tab, step chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	value, err := chromedp.Run(ctx, step)
	if err != nil {
		b.t.Fatalf("%s: %v; the page says: %s", b.address(), err, b.summary())
	}
	return value
}

// load does something that leads to another page, and returns the status of it.
func (b *tab) load(steps ...chromedp.Action[chromedp.Void]) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, steps...)
	if err != nil {
		b.t.Fatalf("%s: %v; the page says: %s", b.address(), err, b.summary())
	}
	return int(answer.Status)
}

// visit goes to a path of the site and wants a status.
func (b *tab) visit(path string, want int) {
	b.t.Helper()
	if got := b.load(chromedp.Navigate(b.site.origin + path)); got != want {
		b.t.Fatalf("%s: got status %d want %d; the page says: %s", path, got, want, b.summary())
	}
}

// click clicks what leads to another page, which must be a good one.
func (b *tab) click(selector string) {
	b.t.Helper()
	if got := b.load(chromedp.Click(chromedp.CSS(selector))); got != http.StatusOK {
		b.t.Fatalf("after a click on %s: got status %d want 200; the page says: %s", selector, got, b.summary())
	}
}

// follow clicks the link with that text.
func (b *tab) follow(text string) {
	b.t.Helper()
	if got := b.load(chromedp.Click(`//a[normalize-space()="` + text + `"]`)); got != http.StatusOK {
		b.t.Fatalf("after a click on %q: got status %d want 200; the page says: %s", text, got, b.summary())
	}
}

// press clicks the button with that text, which leads to another page.
func (b *tab) press(text string) {
	b.t.Helper()
	if got := b.load(chromedp.Click(`//button[normalize-space()="` + text + `"]`)); got != http.StatusOK {
		b.t.Fatalf("after a click on %q: got status %d want 200; the page says: %s", text, got, b.summary())
	}
}

// write types a text into the visible field of a name; forms in a table have hidden ones.
func (b *tab) write(name, text string) {
	b.t.Helper()
	selector := `main [name="` + name + `"]:not([type="hidden"])`
	field := chromedp.CSS(selector)
	// Not chromedp.Clear, which fails for an empty text area.
	empty := evaluate[chromedp.Void](`void (document.querySelector(` + quote(selector) + `).value = "")`)
	b.do(chromedp.WaitVisible(field), empty, chromedp.SendKeys(field, text))
}

// choose chooses from the list of a name.
func (b *tab) choose(name, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(`main select[name="`+name+`"]`), value))
}

// text returns the visible text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return read(b, chromedp.Text(chromedp.CSS(selector)))
}

// shows wants a text somewhere in the content of the page.
func (b *tab) shows(want string) {
	b.t.Helper()
	if got := b.text("main"); !strings.Contains(got, want) {
		b.t.Fatalf("%s: got %q want it to say %q", b.address(), got, want)
	}
}

// has reports whether the page has such an element.
func (b *tab) has(selector string) bool {
	b.t.Helper()
	return read(b, evaluate[bool](`document.querySelector(`+quote(selector)+`) !== null`))
}

// path returns where the tab is, without the host.
func (b *tab) path() string { return strings.TrimPrefix(b.address(), b.site.origin) }

// address returns where the tab is, as far as it can tell.
func (b *tab) address() string {
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	location, err := chromedp.Run(ctx, chromedp.Location())
	if err != nil {
		return "a tab of which nothing is known: " + err.Error()
	}
	return location
}

// summary returns the beginning of what the page says, for the message of a failure.
func (b *tab) summary() string {
	const enough = 600
	ctx, cancel := context.WithTimeout(b.ctx, stepLimit)
	defer cancel()
	text, err := chromedp.Run(ctx, evaluate[string](`document.body?.innerText ?? ""`))
	if err != nil {
		return err.Error()
	}
	return text[:min(len(text), enough)]
}

// finish hands over what the tab was seen to do wrong.
func (b *tab) finish() {
	for _, problem := range b.watch.settle(b.ctx, b.site.origin) {
		b.t.Errorf("the browser: %s", problem)
	}
}
