package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// mails are the golden messages of package mail, with the picture of each.
var mails = map[string]string{"digest": "digestchart", "event": "chart", "managers": "", "invitation": "", "confirmation": "", "confirmation-managers": "", "disabled": ""}

// TestMails renders the messages that dmarcd sends, as a mail program does: nothing is wider
// than the screen, the chart is shown, and colours have contrast on light and dark ground.
func TestMails(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "internal", "notify", "mail", "testdata")
	mux := http.NewServeMux()
	for name, chart := range mails {
		message := musttest.Get(os.ReadFile(filepath.Join(folder, name+".golden.html")))(t)
		shown := strings.ReplaceAll(string(message), "cid:chart", "/"+chart+".golden.png")
		mux.HandleFunc("/mail/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(shown)) // the browser may have gone
		})
	}
	mux.Handle("/", http.FileServer(http.Dir(folder)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b := (&site{origin: server.URL}).open(t)
	b.t = t
	dark := look{name: "dark phone", scheme: "dark", width: 390, height: 844, phone: true}
	for name := range mails {
		b.visit("/mail/"+name, http.StatusOK)
		for _, l := range append(looks[:len(looks):len(looks)], narrow, dark) {
			l.wear(b)
			for _, element := range read(b, evaluate[[]string](fmt.Sprintf(tooWide, l.width))) {
				t.Errorf("%s, %s: wider than the screen: %s", name, l.name, element)
			}
			if broken := read(b, evaluate[int](`[...document.images].filter((image) => !image.naturalWidth).length`)); broken > 0 {
				t.Errorf("%s, %s: got %d pictures that are not shown", name, l.name, broken)
			}
			for _, violation := range b.axe(mailRules) {
				t.Errorf("%s, %s: %s", name, l.name, violation)
			}
			if *screenshots != "" {
				b.draw(*screenshots, "mail-"+name+"-"+strings.ReplaceAll(l.name, " ", "-"), l)
			}
		}
	}
	b.do(chromedp.Navigate("about:blank"))
}
