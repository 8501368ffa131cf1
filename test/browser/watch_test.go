package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// lastPath is what a tab asks for, and lastWord what it says, when everything before
// is to have been seen. Events come in order.
const (
	lastPath = "/healthz?seen"
	lastWord = "everything was seen"
)

// watch notes what a tab does that no page of ours may do, and answers its questions
// with yes. It is safe for concurrent use.
type watch struct {
	hosts    []string // that may be asked
	watching sync.WaitGroup
	// asked and said are closed when lastPath and lastWord have come by.
	asked, output chan struct{}

	mu        sync.Mutex
	problems  []string
	questions []string
}

// watchTab watches a tab until its context ends.
func watchTab(ctx context.Context, hosts []string) *watch {
	w := &watch{hosts: hosts, asked: make(chan struct{}), output: make(chan struct{})}
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	console := chromedp.Console(ctx)
	dialogs := chromedp.Events(ctx, page.JavascriptDialogOpening)
	w.watching.Go(func() {
		for request, err := range requests {
			if err == nil {
				w.request(request.Request.URL)
			}
		}
	})
	w.watching.Go(func() {
		for message, err := range console {
			if err == nil {
				w.message(message)
			}
		}
	})
	w.watching.Go(func() {
		for dialog, err := range dialogs {
			if err == nil {
				w.dialog(ctx, dialog)
			}
		}
	})
	return w
}

func (w *watch) request(address string) {
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		w.problem("asked for %q, which is no address", address)
	case parsed.RequestURI() == lastPath:
		close(w.asked)
	case parsed.Host != "" && !slices.Contains(w.hosts, parsed.Host):
		w.problem("asked another host for %s", address)
	}
}

// message records errors and warnings, such as a violation of the Content-Security-Policy. The
// test itself expects error responses.
func (w *watch) message(m chromedp.ConsoleMessage) {
	switch {
	case m.Text == lastWord:
		close(w.output)
	case m.Source == "network":
	case m.IsException(), m.Type == chromedp.ConsoleError, m.Type == chromedp.ConsoleWarning:
		w.problem("%s (%s)", m, m.URL)
	}
}

// dialog answers a question. Our pages ask, and never say something by alert.
func (w *watch) dialog(ctx context.Context, dialog page.EventJavascriptDialogOpening) {
	if dialog.Type == page.DialogTypeConfirm {
		w.mu.Lock()
		w.questions = append(w.questions, dialog.Message)
		w.mu.Unlock()
	} else {
		w.problem("a script said %q by %s", dialog.Message, dialog.Type)
	}
	accept := page.HandleJavaScriptDialogParams{Accept: true}
	if _, err := chromedp.Call(ctx, page.HandleJavaScriptDialog, accept); err != nil && ctx.Err() == nil {
		w.problem("the question %q could not be answered: %v", dialog.Message, err)
	}
}

func (w *watch) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// asks returns the questions that the pages asked.
func (w *watch) asks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.questions)
}

// settle waits until everything that the tab did has been seen, and returns what was
// wrong with it.
func (w *watch) settle(ctx context.Context, origin string) []string {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Navigate(origin+lastPath), evaluate[chromedp.Void](`console.log(`+quote(lastWord)+`)`))
	if err != nil {
		w.problem("the last page: %v", err)
	}
	for _, seen := range []chan struct{}{w.asked, w.output} {
		select {
		case <-seen:
		case <-ctx.Done():
			w.problem("not everything that the tab did was seen")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.problems)
}

// wait returns when the watchers of the tab have ended. Its context has ended.
func (w *watch) wait() { w.watching.Wait() }

// evaluate runs an expression in the page, waits for it where it is a promise, and
// returns its value.
func evaluate[T any](expression string) chromedp.Action[T] {
	return chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)
}

// quote returns a text as a literal of JavaScript.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string is always JSON
	}
	return string(literal)
}

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
