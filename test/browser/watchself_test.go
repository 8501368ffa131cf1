package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// TestWatch checks that the watch, on which the other tests rely, sees what it is for.
func TestWatch(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, policy, page string
		want               string // a part of the problem; "" for none
	}{
		{name: "a good page", page: `<p>Nothing is wrong.</p>`},
		{name: "a script of an outsider", page: `<script>alert("here")</script>`, want: `a script said "here" by alert`},
		{name: "an image elsewhere", page: `<img src="http://hostile.example/x.png">`, want: "asked another host for http://hostile.example/x.png"},
		{name: "a violation of the policy", policy: "script-src 'self'", page: `<script>alert("here")</script>`, want: "Content Security Policy"},
		{name: "an error that no handler caught", page: `<script>throw new Error("lost")</script>`, want: "lost"},
		{name: "an error in the console", page: `<script>console.error("told")</script>`, want: "told"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Content-Security-Policy", row.policy)
				_, _ = w.Write([]byte("<!doctype html>" + row.page)) // the browser tells if it is cut
			}))
			defer server.Close()
			ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
			defer end()
			musttest.Do(t, chromedp.Do(ctx))
			w := watchTab(ctx, []string{strings.TrimPrefix(server.URL, "http://")})
			musttest.Do(t, chromedp.Do(ctx, chromedp.Navigate(server.URL)))
			got := w.settle(ctx, server.URL)
			as := func(problem string) bool { return strings.Contains(problem, row.want) }
			if row.want == "" && len(got) > 0 || row.want != "" && !slices.ContainsFunc(got, as) {
				t.Errorf("got the problems %q want %q", got, row.want)
			}
		})
	}
}
