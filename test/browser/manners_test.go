package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// TestManyDomainsWithLongNames checks a list that is longer and wider than the
// screen: it breaks, and the page does not move sideways.
func TestManyDomainsWithLongNames(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	label := strings.Repeat("a", 60)
	names := []string{strings.Join([]string{label, label, label, "example"}, ".")}
	for i := range 60 {
		names = append(names, fmt.Sprintf("d%02d.example", i))
	}
	s.run(append([]string{"domain", "add", "--team", "default"}, names...)...)
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/domains", http.StatusOK)
	b.shows("1–50 of 61")
	for _, path := range []string{"/app/", "/app/domains", "/app/domains/" + names[0], "/app/domains/" + names[0] + "/setup", "/app/domains/" + names[0] + "/settings"} {
		b.visit(path, http.StatusOK)
		for _, l := range append(looks, narrow) {
			b.fits(path[:min(len(path), 40)], l)
		}
	}
}

// chartColours are those that the first chart of the page is drawn with.
const chartColours = `(() => {
	const canvas = document.querySelector(".plot canvas");
	const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
	copy.drawImage(canvas, 0, 0);
	const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
	const seen = new Set();
	for (let i = 0; i < pixels.length; i += 4) {
		if (pixels[i + 3] === 255) seen.add(pixels[i] + " " + pixels[i + 1] + " " + pixels[i + 2]);
	}
	return [...seen];
})()`

// TestChartsOnPaperAndInSystemColours draws a chart of a dark page on paper, and one
// where the system rules the colours.
func TestChartsOnPaperAndInSystemColours(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.upload(file(t, "report.xml", aggregateReport("example.com")))
	b.visit("/app/", http.StatusOK)
	const compliant, failing = "47 152 104", "212 73 63" // --chart-good and --chart-bad of a light page
	for _, media := range []emulation.SetEmulatedMediaParams{
		{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}},
		{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}, {Name: "forced-colors", Value: "active"}}},
	} {
		musttest.Get(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media))(t)
		seen := strings.Join(read(b, evaluate[[]string](chartColours)), ", ")
		if !strings.Contains(seen, compliant) || !strings.Contains(seen, failing) {
			t.Errorf("%q: got the colours %s want %s and %s among them", media.Media, seen, compliant, failing)
		}
		if media.Media == "print" {
			if paper := b.text("main"); !strings.Contains(paper, "days in UTC") || strings.Contains(paper, "Add domains") {
				t.Errorf("on paper: got %q want the days and no buttons", paper)
			}
		}
	}
}

// TestSessionEndsUnderAForm signs out behind the back of two pages: what was sent is
// said not to be done, and nothing claims that it was.
func TestSessionEndsUnderAForm(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/reports/upload", http.StatusOK)
	b.forgetCookies()
	b.do(
		chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{file(t, "report.xml", aggregateReport("example.com"))}),
		chromedp.Click(chromedp.CSS("main form button")),
		chromedp.Poll[chromedp.Void](`document.querySelector("[data-upload-status]").textContent.includes("Sign in")`),
	)
	if got := b.text("main"); strings.Contains(got, "Done") || strings.Contains(got, "Password") {
		t.Errorf("got %q want no receipts and no page within the page", got)
	}

	b.signIn("ada@example.com")
	b.visit("/app/domains/new", http.StatusOK)
	b.write("domain", "example.com")
	b.forgetCookies()
	b.press("Add domains")
	b.shows("the form was not sent")
	b.write("email", "ada@example.com")
	b.write("password", password)
	b.press("Sign in")
	if got, want := b.path(), "/app/domains/new"; got != want {
		t.Errorf("got %s want %s, where the form stands", got, want)
	}
}

// forgetCookies takes away the session, as its end would.
func (b *tab) forgetCookies() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
}

// TestBackRestoresTheFilter narrows a list twice and goes back once.
func TestBackRestoresTheFilter(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	s.run("domain", "add", "--team", "default", "example.com", "example.org")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/activity/everything?days=7", http.StatusOK)
	b.write("domain", "org")
	b.press("Filter")
	b.load(evaluate[chromedp.Void](`(() => {
		const kind = document.querySelector("#field-kind");
		kind.value = "dns";
		kind.dispatchEvent(new Event("change", { bubbles: true }));
	})()`))
	if got, want := b.path(), "/app/activity/everything?domain=org&kind=dns&days=7"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	// The page may come back as it was left, without being loaded again.
	b.do(evaluate[chromedp.Void](`setTimeout(() => history.back())`))
	daemon.Eventually(t, stepLimit, "the page before", func() bool {
		return b.path() == "/app/activity/everything?domain=org&days=7" && read(b, evaluate[bool](`document.readyState === "complete"`))
	})
	if got := read(b, evaluate[string](`document.querySelector("#field-domain").value + " " + document.querySelector("#field-kind").value`)); got != "org " {
		t.Errorf("got the filter %q want what the address says", got)
	}
}

// TestFilterRestoresThePosition chooses in a filter on a small screen: the page with the result begins
// where the one before was, with the same field focused.
func TestFilterRestoresThePosition(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/activity/everything", http.StatusOK)
	narrow.wear(b)
	const position = 150
	b.load(evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const kind = document.querySelector("#field-kind");
		scrollTo(0, %d);
		kind.focus({ preventScroll: true });
		kind.value = "dns";
		kind.dispatchEvent(new Event("change", { bubbles: true }));
	})()`, position)))
	if got := read(b, evaluate[string](`new URLSearchParams(location.search).get("kind") + " " + document.activeElement.id + " " + scrollY`)); got != fmt.Sprint("dns field-kind ", position) {
		t.Errorf("got %q, want the same field and position, with the choice in the address", got)
	}
	b.visit("/app/activity/everything", http.StatusOK)
	if got := read(b, evaluate[int](`scrollY`)); got != 0 {
		t.Errorf("got the position %d of a page that was opened, want its top", got)
	}
}

// TestDoneIsReportedOnce checks the DNS, and loads the page again.
func TestDoneIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.visit("/app/domains/example.com/dns", http.StatusOK)
	b.press("Check now")
	b.shows("The DNS was checked just now.")
	daemon.Eventually(t, stepLimit, "the address says it no more", func() bool { return b.path() == "/app/domains/example.com/dns" })
	b.load(chromedp.Reload())
	if b.has(".flash") {
		t.Error("got what was done again, want it told once")
	}
}

// TestMenuClosesBehindTheKeyboard opens the menu by the keyboard and goes on.
func TestMenuClosesBehindTheKeyboard(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	b := s.open(t)
	b.acceptInvitation(s.link, "ada@example.com")
	b.do(chromedp.Focus(chromedp.CSS("details.menu > summary")), chromedp.KeyEvent("\r"))
	if !b.has("details.menu[open]") {
		t.Fatal("got a closed menu want Enter to open it")
	}
	b.do(chromedp.Focus(chromedp.CSS("main a.button")))
	if b.has("details.menu[open]") {
		t.Error("got an open menu want it closed behind the focus")
	}
}
