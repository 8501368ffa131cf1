package browser_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/demo"
)

// look is a rendering of a page.
type look struct {
	name          string
	scheme        string // light or dark
	width, height int64
	phone         bool
	// rules are the rules of axe that can find more than in the previous look.
	rules rules
}

var looks = []look{
	{name: "light", scheme: "light", width: wideWidth, height: wideHeight, rules: allRules},
	{name: "dark", scheme: "dark", width: wideWidth, height: wideHeight, rules: colourRules},
	{name: "phone", scheme: "light", width: 390, height: 844, phone: true, rules: shapeRules},
}

// wear makes the tab render pages in that way.
func (l look) wear(b *tab) {
	b.t.Helper()
	options := []chromedp.EmulateViewportOption{}
	if l.phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	b.do(chromedp.EmulateViewport(l.width, l.height, options...))
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme},
		{Name: "prefers-reduced-motion", Value: "reduce"}, // no colour is on its way to another
	}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
	// Two frames, so that what listens to the change has drawn anew.
	b.do(evaluate[chromedp.Void](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))`))
}

// shown is a page of the sample team. Where its address is only known to another page,
// path is that page and link leads from there.
type shown struct {
	name, path, link string
}

var shownPages = []shown{
	{name: "overview", path: "/app/"},
	{name: "overview-year", path: "/app/?days=365"},
	{name: "domains", path: "/app/domains"},
	{name: "teams", path: "/app/teams"},
	{name: "domain-new", path: "/app/domains/new"},
	{name: "domain", path: "/app/domains/fernlea.example?days=365"},
	{name: "domain-spoofed", path: "/app/domains/brightpay.example"},
	{name: "domain-parked", path: "/app/domains/oldmill.example"},
	{name: "domain-senders", path: "/app/domains/brightpay.example/senders"},
	{name: "domain-dns", path: "/app/domains/tinwhistle.example/dns"},
	{name: "domain-changes", path: "/app/domains/fernlea.example/changes"},
	{name: "domain-policy", path: "/app/domains/brightpay.example/policy?p=reject"},
	{name: "domain-spoofing", path: "/app/domains/brightpay.example/senders?class=spoofing"},
	{name: "activity", path: "/app/activity"},
	{name: "activity-dns", path: "/app/activity/dns?days=365"},
	{name: "activity-everything", path: "/app/activity/everything?days=90"},
	{name: "domain-print", path: "/app/domains/brightpay.example/print"},
	{name: "print", path: "/app/print"},
	{name: "domain-setup", path: "/app/domains/tinwhistle.example/setup"},
	{name: "domain-failure-reports", path: "/app/domains/brightpay.example/reports?kind=failure"},
	{name: "domain-tls-reports", path: "/app/domains/harbourlight.example/reports?kind=tls"},
	{name: "domain-settings", path: "/app/domains/harbourlight.example/settings"},
	{name: "search", path: "/app/search?q=bright"},
	{name: "senders", path: "/app/senders"},
	{name: "senders-address", path: "/app/senders?group=address&failing=yes"},
	{name: "sender", path: "/app/domains/tinwhistle.example", link: `main a[href^="/app/senders/sender/"]`},
	{name: "sender-address", path: "/app/domains/brightpay.example/senders?group=address", link: `main a[href^="/app/senders/address/"]`},
	{name: "senders-own", path: "/app/senders/own"},
	{name: "reports", path: "/app/reports"},
	{name: "report-aggregate", path: "/app/reports?kind=aggregate", link: `main a[href^="/app/reports/rep_"]`},
	{name: "report-failure", path: "/app/reports?kind=failure", link: `main a[href^="/app/reports/rep_"]`},
	{name: "report-tls", path: "/app/reports?kind=tls", link: `main a[href^="/app/reports/rep_"]`},
	{name: "rejected", path: "/app/reports/rejected"},
	{name: "exclude", path: "/app/reports/exclude?reporter=bigmail.example"},
	{name: "upload", path: "/app/reports/upload"},
	{name: "builder", path: "/app/tools/dmarc?p=reject&sp=quarantine&np=reject&rua=reports@example.com&domain=example.com"},
	{name: "tools", path: "/app/tools"},
	{name: "tools-mail", path: "/app/tools/mail"},
	{name: "tools-check", path: "/app/tools/check?domain=brightpay.example"},
	{name: "builder-spf", path: "/app/tools/spf?domain=tinwhistle.example"},
	{name: "builder-mta-sts", path: "/app/tools/mta-sts?domain=brightpay.example&mode=enforce&mx=mx.example.com"},
	{name: "builder-bimi", path: "/app/tools/bimi?domain=brightpay.example&l=https://brightpay.example/logo.svg"},
	{name: "settings-tokens", path: "/app/settings/tokens"},
	{name: "settings-members", path: "/app/settings/members"},
	{name: "settings-mailboxes", path: "/app/settings/mailboxes"},
	{name: "settings-notifications", path: "/app/settings/notifications"},
	{name: "settings-notifications-new", path: "/app/settings/notifications/new/slack"},
	{name: "settings-retention", path: "/app/settings/retention"},
	{name: "settings-team", path: "/app/settings/team"},
	{name: "settings-audit", path: "/app/settings/audit"},
	{name: "account", path: "/app/account"},
	{name: "installation-teams", path: "/app/installation/teams"},
	{name: "installation-users", path: "/app/installation/users"},
	{name: "installation-audit", path: "/app/installation/audit"},
}

// TestDemo opens the sample team. Every page is rendered in every way: axe finds nothing to
// say, charts are drawn, and nothing is wider than the screen. Beside that, the tasks of
// docs/tasks.md are done.
func TestDemo(t *testing.T) {
	t.Parallel()
	s := serveDemo(t)
	visitor := s.open(t)
	visitor.visit(s.link, http.StatusOK)
	visitor.inspect("invitation")
	visitor.acceptInvitation(s.link, demo.Ada)
	visitor.lookAround()
	visitor.visit("/app/nothing", http.StatusNotFound)
	visitor.inspect("not-found")
	visitor.signOut()
	visitor.inspect("sign-in")
	visitor.visit("/app/reset", http.StatusOK)
	visitor.inspect("reset-without-mail")

	const tabs = 3
	for worker := range tabs {
		t.Run(fmt.Sprintf("looks %d", worker+1), func(t *testing.T) {
			t.Parallel()
			b := s.open(t)
			b.signIn(demo.Ada)
			for i := worker; i < len(shownPages); i += tabs {
				b.show(shownPages[i])
			}
		})
	}
	t.Run("tasks", func(t *testing.T) {
		t.Parallel()
		b := s.open(t)
		b.signIn(demo.Ada)
		b.doTasks()
	})
	t.Run("summaries", func(t *testing.T) {
		t.Parallel()
		b := s.open(t)
		b.signIn(demo.Ada)
		b.visit("/app/domains", http.StatusOK)
		domains := read(b, evaluate[[]string](`[...document.querySelectorAll("main a[data-copy]")].map((link) => link.pathname)`))
		if len(domains) < 5 {
			t.Fatalf("got the domains %q, want at least five", domains)
		}
		for _, path := range domains {
			b.visit(path, http.StatusOK)
			b.fitsOneScreen(path)
		}
	})
}

// oneScreen are the elements of a summary, and on how many screens they are: all are on the first of a
// desk, and on a phone the conclusion and the way to reject are on the first two, above its bar.
var oneScreen = map[string]struct {
	look
	screens int64
}{
	".lead, .advice, .figures, .summary": {look{name: "desk", scheme: "light", width: 1440, height: 900}, 1},
	".lead, .advice":                     {look{name: "phone", scheme: "light", width: 360, height: 800, phone: true}, 2},
}

// fitsOneScreen wants the summary of a domain to be seen at once.
func (b *tab) fitsOneScreen(path string) {
	b.t.Helper()
	for parts, on := range oneScreen {
		on.wear(b)
		low := read(b, evaluate[float64](`Math.max(...[...document.querySelectorAll(`+quote(parts)+`)].map((part) => part.getBoundingClientRect().bottom + scrollY))`))
		bar := read(b, evaluate[float64](`((bar) => getComputedStyle(bar).position === "fixed" ? bar.offsetHeight : 0)(document.querySelector("nav.main"))`))
		if most := float64(on.screens) * (float64(on.height) - bar); !(low <= most) || !b.has(".advice") {
			b.t.Errorf("%s, %s: got the summary down to %.0f pixels, want at most %.0f", path, on.name, low, most)
		}
	}
	looks[0].wear(b)
}

// lookAround wants something of everything in the sample teams, and to be able to
// switch between them.
func (b *tab) lookAround() {
	b.t.Helper()
	for _, page := range []struct {
		path    string
		message []string
	}{
		{"/app/reports/rejected", []string{"automatic reply.eml", "report of bigmail.xml"}},
		{"/app/settings/tokens", []string{"nightly export", "active", "revoked"}},
		{"/app/settings/members", []string{"owner", "editor", "viewer", "ines@fernlea.example"}},
		{"/app/settings/mailboxes", []string{"imap.cloudpost.example:993"}},
		{"/app/settings/audit", []string{"added a domain", "joined the team", "revoked a token", "added a mailbox"}},
		{"/app/domains/tinwhistle.example/changes", []string{"include:_a.spf.cloudpost.example now lists"}},
		{"/app/installation/teams", []string{demo.FirstTeam, demo.SecondTeam}},
	} {
		b.visit(page.path, http.StatusOK)
		for _, want := range page.message {
			b.shows(want)
		}
	}
	for _, team := range []struct{ name, domain string }{{demo.SecondTeam, "paperkite.example"}, {demo.FirstTeam, "tinwhistle.example"}} {
		b.do(chromedp.Click(chromedp.CSS("details.menu > summary")))
		b.press(team.name)
		b.shows(team.domain)
	}
	if strings.Contains(b.site.Log(), "could not read mailbox") {
		b.t.Error("got a mailbox that the demo tried to read want it left alone")
	}
}

// show checks one page of the sample team.
func (b *tab) show(p shown) {
	b.t.Helper()
	b.visit(p.path, http.StatusOK)
	if p.link != "" {
		b.click(p.link)
	}
	b.inspect(p.name)
}

// blankCharts counts the figures with numbers that are not drawn: those without a
// canvas, or with one of a single colour, as a small copy shows.
const blankCharts = `[...document.querySelectorAll("figure:has(.numbers)")].filter((figure) => {
	const canvas = figure.querySelector(".plot canvas");
	if (!canvas) return true;
	const copy = new OffscreenCanvas(64, 64).getContext("2d", { willReadFrequently: true });
	copy.drawImage(canvas, 0, 0, 64, 64);
	const pixels = new Uint32Array(copy.getImageData(0, 0, 64, 64).data.buffer);
	return pixels.every((pixel) => pixel === pixels[0]);
}).length`

// tooWide names the elements that make the page wider than a screen of that width. A
// phone's browser would zoom out, so that it cannot be asked for its width.
const tooWide = `document.documentElement.scrollWidth <= %[1]d ? [] : ["the page", ...[...document.querySelectorAll("body *")]
	.filter((element) => element.getBoundingClientRect().right > %[1]d + 1 && !element.closest(".skip"))
	.slice(0, 5).map((element) => element.outerHTML.slice(0, 120))]`

// scrollBoxes names the elements within the page that can be scrolled, without rows of tabs.
const scrollBoxes = `[...document.querySelectorAll("body *:not(textarea, select, .tabs > ul)")].filter((element) => {
	const { overflowX, overflowY } = getComputedStyle(element);
	return /auto|scroll/.test(overflowX + overflowY);
}).map((element) => element.outerHTML.slice(0, 120))`

// missingCells names the cells of rows that have something in them and are not seen.
const missingCells = `[...document.querySelectorAll("main tbody td")].filter((cell) => {
	const { left, right, height } = cell.getBoundingClientRect();
	return cell.checkVisibility({ contentVisibilityAuto: false }) !== !cell.closest("details:not([open])") ||
		cell.innerText.trim() !== "" && (height < 1 || left < 0 || right > %[1]d + 1);
}).slice(0, 5).map((cell) => cell.outerHTML.slice(0, 120))`

// openNumbers opens or closes the tables of charts.
const openNumbers = `[...document.querySelectorAll("details.numbers")].map((d) => (d.open = %t)).length`

// tooLong is by how much the page goes on below its end.
const tooLong = `document.documentElement.scrollHeight -
	Math.max(innerHeight, Math.ceil(document.querySelector(".foot").getBoundingClientRect().bottom + scrollY))`

// tabRows is how many rows the tabs of a page take; the current one is in sight.
const tabRows = `(() => {
	const current = document.querySelector(".tabs [aria-current]")?.getBoundingClientRect();
	const hidden = current && (current.left < 0 || current.right > innerWidth + 1);
	return new Set([...document.querySelectorAll(".tabs li")].map((tab) => tab.offsetTop)).size + (hidden ? 100 : 0);
})()`

// buttonRows is how many rows the buttons of the reports take, 0 on other pages.
const buttonRows = `location.pathname === "/app/reports" ? new Set([...document.querySelectorAll(".head .tools > *")].map((button) => button.offsetTop)).size : 0`

// narrow is a wide screen on which everything is shown four times as large
// (WCAG 1.4.10).
var narrow = look{name: "narrow", scheme: "light", width: 320, height: 256}

// tablet is a screen between a phone and a desk.
var tablet = look{name: "tablet", scheme: "light", width: 820, height: 1180}

// fits wants the page to be as wide and as long as what it shows.
func (b *tab) fits(name string, l look) {
	b.t.Helper()
	l.wear(b)
	for _, element := range read(b, evaluate[[]string](fmt.Sprintf(tooWide, l.width))) {
		b.t.Errorf("%s, %s: wider than the screen: %s", name, l.name, element)
	}
	for _, element := range read(b, evaluate[[]string](scrollBoxes)) {
		b.t.Errorf("%s, %s: can be scrolled within the page: %s", name, l.name, element)
	}
	for _, cell := range read(b, evaluate[[]string](fmt.Sprintf(missingCells, l.width))) {
		b.t.Errorf("%s, %s: a cell of a row is not seen: %s", name, l.name, cell)
	}
	if rows := read(b, evaluate[int](tabRows)); rows > 1 && l.phone {
		b.t.Errorf("%s, %s: got the tabs in %d rows, want one", name, l.name, rows)
	}
	if rows := read(b, evaluate[int](buttonRows)); rows > 1 {
		b.t.Errorf("%s, %s: got the buttons in %d rows, want one", name, l.name, rows)
	}
	if long := read(b, evaluate[int](tooLong)); long > 1 {
		b.t.Errorf("%s, %s: got %d pixels below the end of the page want none", name, l.name, long)
	}
}

// inspect checks the current page in every rendering. The name tells which it is. To be looked through, it
// is only drawn.
func (b *tab) inspect(name string) {
	b.t.Helper()
	if *everyScreen != "" {
		b.drawAll(name)
		return
	}
	for _, l := range looks {
		if l.rules == colourRules { // it differs in its colours alone
			l.wear(b)
		} else {
			b.fits(name, l)
		}
		if blank := read(b, evaluate[int](blankCharts)); blank > 0 {
			b.t.Errorf("%s, %s: got %d charts that are not drawn want none (scripts/build-assets.sh bundles what draws them)", name, l.name, blank)
		}
		for _, violation := range b.axe(b.rulesOf(l)) {
			b.t.Errorf("%s, %s: %s", name, l.name, violation)
		}
		if *screenshots != "" {
			b.draw(*screenshots, name+"-"+l.name, l)
		}
	}
	read(b, evaluate[int](fmt.Sprintf(openNumbers, true)))
	b.fits(name, narrow)
	read(b, evaluate[int](fmt.Sprintf(openNumbers, false)))
	b.fits(name, tablet)
	for _, width := range widths {
		l := look{name: strconv.FormatInt(width, 10), scheme: "light", width: width, height: 800}
		l.wear(b)
		for _, element := range read(b, evaluate[[]string](fmt.Sprintf(tooWide, width))) {
			b.t.Errorf("%s, %d pixels: wider than the screen: %s", name, width, element)
		}
		if rows := read(b, evaluate[int](tabRows)); rows > 1 && width == widths[0] {
			b.t.Errorf("%s, %d pixels: got the tabs in %d rows, want one", name, width, rows)
		}
	}
	looks[0].wear(b)
}

// widths are those of small and large screens, and those at which layouts change.
var widths = []int64{360, 641, 768, 1000, 1440}

// rulesOf returns the rules of axe to run in a rendering: where a phone shows the same elements
// as the first one, only those that depend on their places.
func (b *tab) rulesOf(l look) rules {
	b.t.Helper()
	switch {
	case l.rules == allRules:
		read(b, evaluate[int](noteShown))
	case l.phone && read(b, evaluate[bool](sameShown)):
		return positionRules
	}
	return l.rules
}

// TestLongAddresses shows a finding with an address of reports, and an account with a long email
// address, on narrow screens. Each address is one word.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:reports-about-authentication@another-receiver-of-reports.example"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "operations.and.security@example.com")
	b.visit("/app/domains/example.com/dns", http.StatusOK)
	b.shows("@reports.example")
	b.inspect("a long address")
	b.visit("/app/account", http.StatusOK)
	b.inspect("a long email address")
}

// overlapping names the parts of the header that cover each other, or the edge of the screen.
const overlapping = `(() => {
	const parts = [...document.querySelectorAll(".topbar > .brand, .topbar nav li, .topbar > .find, .topbar > .menu")];
	const box = (part) => part.getBoundingClientRect();
	const name = (part) => part.className || part.innerText;
	const outside = parts.filter((part) => box(part).left < 0 || box(part).right > innerWidth);
	return parts.flatMap((one, i) => parts.slice(i + 1).filter((other) => {
		const a = box(one), b = box(other);
		return a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
	}).map((other) => name(one) + " and " + name(other))).concat(outside.map((part) => name(part) + " and the edge"));
})()`

// TestHeaderFits shows an operator, who has the longest navigation, the header in many widths.
func TestHeaderFits(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "operations.and.security@example.com")
	b.visit("/app/account", http.StatusOK)
	for _, width := range []int64{320, 390, 641, 820, 960, 961, 1000, 1024, 1100, 1200, 1216, 1217, 1280, 1400, 1920} {
		l := look{name: strconv.FormatInt(width, 10), scheme: "light", width: width, height: 900}
		l.wear(b)
		for _, pair := range read(b, evaluate[[]string](overlapping)) {
			t.Errorf("%d pixels: %s overlap", width, pair)
		}
		if *screenshots != "" {
			b.draw(*screenshots, "header-"+l.name, l)
		}
	}
}
