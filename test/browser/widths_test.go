package browser_test

import (
	"net/http"
	"strconv"
	"testing"
)

// TestLongAddresses shows a finding with an address of reports, and an account with a long email
// address, on narrow screens. Each address is one word.
func TestLongAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t, `_dmarc.example.com. TXT "v=DMARC1; p=none; rua=mailto:reports-about-authentication@another-receiver-of-reports.example"`)
	s.run("domain", "add", "--team", "default", "example.com")
	b := s.open(t)
	b.acceptInvitation(s.link, "operations.and.security@example.com")
	b.visit("/app/domains/example.com/dns", http.StatusOK)
	b.says("@reports.example")
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
			b.draw("header-"+l.name, l)
		}
	}
}
