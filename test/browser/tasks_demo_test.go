package browser_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// doTasks does in the demo what the numbered tasks do not: the search by its key, charts that lead
// somewhere, and reports to print.
func (b *tab) doTasks() {
	b.t.Helper()
	const spoofed = "/app/domains/brightpay.example"
	b.findByKey()
	b.clickChart(spoofed, "days", `^/app/domains/brightpay\.example/reports\?from=(\S+)&kind=aggregate&to=(\S+)$`)
	b.clickChart(spoofed+"/senders", "flow", `^/app/senders/sender/`)
	for _, path := range []string{"/app/print", spoofed + "/print"} {
		b.visit(path, http.StatusOK)
		b.printsOn(1)
	}
}

// findByKey finds a domain by the keyboard: the key /, a part of the name, Enter.
func (b *tab) findByKey() {
	b.t.Helper()
	b.visit("/app/reports", http.StatusOK)
	b.do(chromedp.KeyEvent("/"))
	if got := read(b, evaluate[string](`document.activeElement.name`)); got != "q" {
		b.t.Fatalf("after /: got the focus on %q, want it on the search field", got)
	}
	b.load(chromedp.KeyEvent("bright" + kb.Enter))
	b.click(`main a[href="/app/domains/brightpay.example"]`)
	b.shows("brightpay.example")
}

// clickChart clicks into a chart of a page: a day leads to its reports, a sender to the
// sender.
func (b *tab) clickChart(path, kind, want string) {
	b.t.Helper()
	b.visit(path, http.StatusOK)
	// The centre of a chart of days is a day; a flow has its senders on the left.
	at := read(b, evaluate[[]float64](`(() => {
		const plot = document.querySelector("figure[data-chart=`+kind+`] .plot");
		plot.scrollIntoView({ block: "center" });
		const { left, top, width, height } = plot.getBoundingClientRect();
		return [left + (plot.closest("[data-chart=flow]") ? 10 : width / 2), top + (plot.closest("[data-chart=flow]") ? height / 4 : height / 2)];
	})()`))
	b.load(chromedp.MouseClickXY(at[0], at[1]))
	found := regexp.MustCompile(want).FindStringSubmatch(b.path())
	if found == nil || len(found) == 3 && found[1] != found[2] {
		b.t.Errorf("%s: a click into the chart leads to %s, want %s", path, b.path(), want)
	}
}

// printsOn wants the page to fit on that many sheets of A4, with its chart drawn on them.
func (b *tab) printsOn(sheets int) {
	b.t.Helper()
	const width, height = 8.27, 11.69 // A4, in inches
	paper, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PaperWidth: width, PaperHeight: height})
	if err != nil {
		b.t.Fatalf("%s: print: %v", b.address(), err)
	}
	if got := bytes.Count(paper.Data, []byte("/Type /Page\n")); got != sheets {
		b.t.Errorf("%s: got %d sheets, want %d", b.address(), got, sheets)
	}
	bars := read(b, evaluate[int](`document.querySelectorAll(".bars > svg > rect").length`))
	if got := rectangles(b.t, paper.Data); bars < 20 || got < bars {
		b.t.Errorf("%s: got %d rectangles on paper and a chart of %d bars, want all of at least 20", b.address(), got, bars)
	}
}

// pdfStream matches a stream of a PDF file.
var pdfStream = regexp.MustCompile(`(?s)/FlateDecode[^>]*>>\s*stream\r?\n(.*?)\nendstream`)

// rectangles counts those that a PDF file draws.
func rectangles(t *testing.T, file []byte) (n int) {
	t.Helper()
	for _, stream := range pdfStream.FindAllSubmatch(file, -1) {
		r, err := zlib.NewReader(bytes.NewReader(stream[1]))
		if err != nil {
			continue // not a compressed stream
		}
		text := musttest.Get(io.ReadAll(r))(t)
		n += bytes.Count(text, []byte(" re\n"))
	}
	return n
}
