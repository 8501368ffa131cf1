package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// deliveryLimit is how long a delivery of a killed process may take: another process
// takes over after the lease of a minute.
const deliveryLimit = 10 * time.Minute

type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	broken bool
	verify func(body []byte, header http.Header) error
	seen   map[int64]string // webhook-id by seq, of accepted events
	failed int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{seen: map[int64]string{}, verify: func([]byte, http.Header) error { return nil }}
	ids := map[string]int64{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return // the sending process was killed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		var message struct {
			Type string
			Data event
		}
		id := request.Header.Get("webhook-id")
		if err := json.Unmarshal(body, &message); err != nil || message.Type != message.Data.Kind || id != message.Data.ID {
			t.Errorf("delivery %s: got %s, %v", id, body, err)
		}
		if err := r.verify(body, request.Header); err != nil {
			t.Errorf("delivery %s: %v", id, err)
		}
		if before, again := ids[id]; again && before != message.Data.Seq {
			t.Errorf("webhook-id %s is that of two events", id)
		}
		ids[id] = message.Data.Seq
		if r.broken {
			r.failed++
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.seen[message.Data.Seq] = id
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) setBroken(broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = broken
}

func (r *receiver) count() (accepted, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen), r.failed
}

func (s *server) post(path, body string) answer {
	s.in.t.Helper()
	r := request{method: http.MethodPost, path: path, token: s.in.token, body: body}
	if body != "" {
		r.header = jsonType()
	}
	return s.send(r)
}

// TestWebhooksSurviveKills kills the daemon while the endpoint fails and recovers. Every
// event must arrive, signed, and a polling client must see each event once, in order.
func TestWebhooksSurviveKills(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		to := newReceiver(t)
		s := in.serve()
		s.add("example.com")
		s.verify("example.com", "conclusive")

		type webhook struct{ ID, Secret string }
		created := s.post("/webhooks", fmt.Sprintf(`{"url": %q, "kinds": null, "domains": ["example.com"]}`, to.URL))
		created.wantStatus(t, http.StatusCreated)
		var hook webhook
		musttest.Do(t, json.Unmarshal(created.body, &hook))
		verifier := musttest.Get(standard.NewWebhook(hook.Secret))(t)
		to.mu.Lock()
		to.verify = verifier.Verify
		to.mu.Unlock()
		if a := s.get("/webhooks"); strings.Contains(a.text(), hook.Secret) || !strings.Contains(a.text(), hook.ID) {
			t.Errorf("the list: got %s", a.text())
		}

		to.setBroken(true)
		var polled []int64
		for _, zone := range []string{rejectZone, checkedZone, rejectZone} {
			s.changePolicy(zone)
			for _, e := range s.since(int64(len(polled)), "") {
				polled = append(polled, e.Seq)
			}
			s.Kill()
			s = in.serve()
		}
		for i, seq := range polled {
			if seq != int64(i+1) {
				t.Fatalf("polled %v, want every event once in order", polled)
			}
		}
		daemon.Eventually(t, deliveryLimit, "a delivery fails", func() bool { _, failed := to.count(); return failed > 0 })
		to.setBroken(false)
		// A check after a restart may find more.
		events := func() int { return len(s.since(0, "")) }
		daemon.Eventually(t, deliveryLimit, "all events are delivered", func() bool { accepted, _ := to.count(); return accepted == events() })

		type delivery struct {
			ID, State string
			Status    *int
		}
		deliveries := "/webhooks/" + hook.ID + "/deliveries"
		var log []delivery
		daemon.Eventually(t, deliveryLimit, "the log says so", func() bool {
			log = all[delivery](s, deliveries, 100)
			for _, d := range log {
				if d.State != "delivered" || d.Status == nil || *d.Status != http.StatusOK {
					return false
				}
			}
			return len(log) == events()
		})
		s.post(deliveries+"/"+log[0].ID+"/retry", "").wantStatus(t, http.StatusAccepted)
		if got := readAs[delivery](t, s.post("/webhooks/"+hook.ID+"/test", "")); got.State != "delivered" {
			t.Errorf("a test: got %+v", got)
		}
		s.send(request{method: http.MethodDelete, path: "/webhooks/" + hook.ID, token: in.token}).wantStatus(t, http.StatusNoContent)
		s.get(deliveries).wantStatus(t, http.StatusNotFound)
	})
}

func TestBadWebhooks(t *testing.T) {
	onSQLite(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_OUTBOUND_ALLOW=")
		for _, body := range []string{
			`{}`, `{"url": null}`, `{"url": "ftp://example.com/"}`, `{"url": "https://127.0.0.1/"}`, `{"url": "http://[::1]/"}`, `{"url": "https://2130706433/"}`,
			`{"url": "https://a:b@example.com/"}`, `{"url": "https://example.com/", "kinds": ["x"]}`, `{"url": "https://example.com/", "kinds": []}`,
			`{"url": "https://example.com/", "format": "fax"}`, `{"url": "https://example.com/", "format": null}`, `{"url": "https://example.com/", "format": "pagerduty"}`,
			`{"url": "https://example.com/", "domains": ["a_b"]}`, `{"url": "https://example.com/", "domains": "example.com"}`,
		} {
			s.post("/webhooks", body).wantStatus(t, http.StatusUnprocessableEntity)
		}
		for _, path := range []string{"/webhooks/whk_1/test", "/webhooks/x/rotate", "/webhooks/whk_1/deliveries/dlv_1/retry"} {
			s.post(path, "").wantStatus(t, http.StatusNotFound)
		}
	})
}

// TestChatEndpoint delivers messages to a chat service, whose URL is a secret.
func TestChatEndpoint(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		type posted struct{ path, text string }
		messages := make(chan posted, 10)
		chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var message struct{ Text string }
			if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
				t.Error(err)
			}
			messages <- posted{r.URL.Path, message.Text}
		}))
		t.Cleanup(chat.Close)
		s := in.serve()
		created := s.post("/webhooks", fmt.Sprintf(`{"url": "%s/services/first", "format": "slack"}`, chat.URL))
		created.wantStatus(t, http.StatusCreated)
		var hook struct {
			ID, URL, Format string
			Secret          *string
		}
		musttest.Do(t, json.Unmarshal(created.body, &hook))
		if hook.URL != chat.URL+"/..." || hook.Format != "slack" || hook.Secret != nil {
			t.Errorf("got %s", created.text())
		}
		s.post("/webhooks/"+hook.ID+"/rotate", "").wantStatus(t, http.StatusUnprocessableEntity)
		want := func(path string) {
			t.Helper()
			s.post("/webhooks/"+hook.ID+"/test", "").wantStatus(t, http.StatusOK)
			if got := <-messages; got.path != path || !strings.Contains(got.text, "This is a test") {
				t.Errorf("got %+v, want a test at %s", got, path)
			}
		}
		want("/services/first")
		change := func(body string) answer {
			return s.send(request{method: http.MethodPatch, path: "/webhooks/" + hook.ID, token: in.token, header: jsonType(), body: body})
		}
		change(`{"enabled": true}`).wantStatus(t, http.StatusOK)
		want("/services/first")
		change(fmt.Sprintf(`{"url": "%s/services/second"}`, chat.URL)).wantStatus(t, http.StatusOK)
		want("/services/second")
		if a := s.get("/webhooks"); strings.Contains(a.text(), "services") {
			t.Errorf("the list shows the path: %s", a.text())
		}
	})
}
