package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// task is a task of docs/tasks.md in the tab of an owner, done by the pointer or by the keyboard
// alone. It counts the clicks, or the keys that stand for them.
type task struct {
	*tab
	keyboard bool
	clicks   int
}

// inBothWays does a task with the pointer and with the keyboard alone, from the overview. The ways
// share the site that on returns, or have one each if the task changes it.
func inBothWays(t *testing.T, on func(*testing.T) *site, do func(*testing.T, *task)) {
	t.Helper()
	for _, way := range []string{"pointer", "keyboard"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := on(t)
			b := &task{tab: s.open(t), keyboard: way == "keyboard"}
			b.acceptInvitation(s.invite(way+"@example.com", "default", "owner"), way+"@example.com")
			b.visit("/app/", http.StatusOK)
			do(t, b)
		})
	}
}

// empty is a new site without domains.
func empty(t *testing.T) *site {
	t.Helper()
	return serve(t, "")
}

// shared is the same site for both ways.
func (s *site) shared(*testing.T) *site { return s }

// took wants the task to have taken that many clicks.
func (b *task) took(want int) {
	b.t.Helper()
	if b.clicks != want {
		b.t.Errorf("%s: got %d clicks, want %d", b.path(), b.clicks, want)
	}
}

// focus moves the focus to an element with the Tab key.
func (b *task) focus(selector string) {
	b.t.Helper()
	const most = 250
	for range most {
		if read(b.tab, evaluate[bool](`document.activeElement.matches(`+quote(selector)+`)`)) {
			return
		}
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("%s: the Tab key does not reach %s", b.path(), selector)
}

// choice is one click on the present page, or the key for it on the focused element.
func (b *task) choice(selector, key string) chromedp.Action[chromedp.Void] {
	b.t.Helper()
	b.clicks++
	if !b.keyboard {
		return chromedp.Click(chromedp.CSS(selector))
	}
	b.focus(selector)
	return chromedp.KeyEvent(key)
}

// mark clicks what changes the present page: a summary, a checkbox.
func (b *task) mark(selector, key string) {
	b.t.Helper()
	b.do(b.choice(selector, key))
}

// click clicks what leads to another page.
func (b *task) click(selector string) {
	b.t.Helper()
	b.clickFor(selector, http.StatusOK)
}

// clickFor clicks what leads to a page with a status.
func (b *task) clickFor(selector string, want int) {
	b.t.Helper()
	if got := b.load(b.choice(selector, kb.Enter)); got != want {
		b.t.Fatalf("after %s: got status %d, want %d; the page says: %s", selector, got, want, b.summary())
	}
}

// settings opens a page of the team settings: two clicks from any page.
func (b *task) settings(path string) {
	b.t.Helper()
	b.mark("details.menu > summary", kb.Enter)
	b.click(`details.menu a[href="` + path + `"]`)
}

// enter writes a text into an empty field, or chooses the option that begins with it.
func (b *task) enter(name, text string) {
	b.t.Helper()
	selector := `main [name="` + name + `"]`
	switch {
	case b.keyboard:
		b.focus(selector)
		b.do(chromedp.KeyEvent(text))
	case b.has(`main select[name="` + name + `"]`): // and not a hidden field of that name
		b.pick(`main select[name="`+name+`"]`, text)
	default:
		b.write(name, text)
	}
}

// pick chooses the option that begins with a text, in lower case.
func (b *task) pick(selector, text string) {
	b.t.Helper()
	if b.keyboard {
		b.focus(selector)
		b.do(chromedp.KeyEvent(text))
		return
	}
	b.do(chromedp.SetValue(chromedp.CSS(selector), read(b.tab, evaluate[string](
		`[...document.querySelectorAll(`+quote(selector+" option")+`)].find((o) => o.text.toLowerCase().startsWith(`+quote(text)+`)).value`))))
}

// finds types into the search field of every page and opens the first result, which says want.
func (b *task) finds(text, want string) {
	b.t.Helper()
	if b.keyboard {
		b.do(chromedp.KeyEvent("/"), chromedp.KeyEvent(text))
	} else {
		b.do(chromedp.SendKeys(chromedp.CSS("#find"), text))
	}
	b.becomes("#found-0", want)
	b.clicks++
	step := chromedp.Click(chromedp.CSS("#found-0"))
	if b.keyboard {
		b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.WaitVisible(chromedp.CSS(`#found-0[aria-selected="true"]`)))
		// Not chromedp.KeyEvent, which sends the form although the page handled the key.
		step = evaluate[chromedp.Void](`void document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }))`)
	}
	if got := b.load(step); got != http.StatusOK {
		b.t.Fatalf("search for %q: got status %d want 200; the page says: %s", text, got, b.summary())
	}
}

// value returns what is in a field.
func (b *tab) value(name string) string {
	b.t.Helper()
	return read(b, evaluate[string](`document.querySelector('main [name="`+name+`"]').value`))
}

// wants wants the page to say all of these, and none of the texts after a "-".
func (b *tab) wants(texts ...string) {
	b.t.Helper()
	got, wrong := strings.Join(strings.Fields(b.text("main")), " "), false
	for _, text := range texts {
		unwanted, not := strings.CutPrefix(text, "-")
		if strings.Contains(got, unwanted) == not {
			b.t.Errorf("%s: want it to contain %q: %v", b.path(), unwanted, !not)
			wrong = true
		}
	}
	if wrong {
		b.t.Errorf("%s: got %q", b.path(), got)
	}
}

// becomes waits until an element says a text.
func (b *tab) becomes(selector, want string) {
	b.t.Helper()
	daemon.Eventually(b.t, guideLimit, "the page says "+want, func() bool { // a part that is replaced may be gone
		return strings.Contains(read(b, evaluate[string](`document.querySelector(`+quote(selector)+`)?.innerText ?? ""`)), want)
	})
}

// The mail of a day that tests plant. The office passes. The shop is yours, since a part of its mail
// carries a signature of the domain; the rest fails because SPF does not list it. The spoofer has
// nothing to do with the domain.
func office(domain string) sample {
	return sample{source: "192.0.2.10", headerFrom: domain, selector: "spring", dkimDomain: domain, spfDomain: domain, messages: 70, disposition: "none", dkim: "pass", spf: "pass"}
}

func shop(domain string) []sample {
	return []sample{
		{source: "192.0.2.20", headerFrom: domain, selector: "shop", dkimDomain: domain, spfDomain: domain, messages: 10, disposition: "none", dkim: "pass", spf: "fail"},
		{source: "192.0.2.20", headerFrom: domain, spfDomain: domain, messages: 30, disposition: "none", dkim: "fail", spf: "fail"},
	}
}

func spoofer(domain string) sample {
	return sample{source: "198.51.100.66", headerFrom: domain, spfDomain: "elsewhere.example", messages: 50, disposition: "none", dkim: "fail", spf: "fail"}
}

// plant adds a domain whose DNS is in the zone, with the same mail on each of 20 days.
func (s *site) plant(domain string, mail ...sample) {
	s.t.Helper()
	s.run("domain", "add", "--team", "default", domain)
	s.run("domain", "verify", "--team", "default", domain)
	for ago := range 20 {
		s.deliver(document(sample{org: "Receiver Inc.", id: fmt.Sprint(domain, ago), domain: domain, ago: ago}, mail...))
	}
}

// plantUnknown adds a domain with mail of the office, and of an address of which nothing is known: a
// valid signature of another domain is in its mail.
func (s *site) plantUnknown(domain string) {
	s.t.Helper()
	s.run("domain", "add", "--team", "default", domain)
	s.run("domain", "verify", "--team", "default", domain)
	unknown := sample{source: "198.51.100.66", headerFrom: domain, selector: "autumn", dkimDomain: "letters.example", messages: 50, disposition: "none", dkim: "fail", spf: "fail"}
	for ago := range 20 {
		report := document(sample{org: "Receiver Inc.", id: fmt.Sprint(ago), domain: domain, ago: ago}, office(domain), unknown)
		s.deliver(strings.ReplaceAll(report, "<selector>autumn</selector><result>fail", "<selector>autumn</selector><result>pass"))
	}
}

// zoneOf is the DNS of a domain with a policy whose SPF record lists the office.
func zoneOf(domain, policy string) string {
	return fmt.Sprintf("_dmarc.%[1]s. TXT \"v=DMARC1; p=%[2]s; rua=mailto:d@%[1]s\"\n%[1]s. TXT \"v=spf1 ip4:192.0.2.10 -all\"\n", domain, policy)
}
