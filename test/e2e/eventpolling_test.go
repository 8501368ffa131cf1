package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	diffs "github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// changePolicy changes the policy and verifies the domain, which adds two events.
func (s *server) changePolicy(zone string) {
	s.in.t.Helper()
	s.in.setZone(zone)
	s.verify("example.com", "conclusive")
}

// since polls the events after a number.
func (s *server) since(seq int64, more string) []event {
	s.in.t.Helper()
	return readAs[page[event]](s.in.t, s.get(fmt.Sprintf("/events?since=%d%s", seq, more))).Items
}

func TestEventsArePolled(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.verify("example.com", "conclusive")
		s.get("/events?since=0").wantBody(t, `{"items":[],"next":null}`)

		waited := make(chan answer, 1)
		go func() {
			a, err := s.try(request{method: http.MethodGet, path: "/events?since=0&wait=15", token: in.token})
			if err != nil {
				t.Error(err)
			}
			waited <- a
		}()
		s.changePolicy(rejectZone)
		first := readAs[page[event]](t, <-waited)
		if len(first.Items) != 2 || first.Items[0].Seq != 1 || first.Items[1].Seq != 2 || first.Next != nil {
			t.Fatalf("after waiting: got %+v want the events 1 and 2", first)
		}
		e := first.Items[1]
		if e.Kind != "policy.strengthened" || e.Summary != "The DMARC policy of example.com was strengthened from none to reject." ||
			e.Data.Domain != "example.com" || !strings.HasSuffix(e.Data.Link, "/app/domains/example.com") {
			t.Errorf("got %+v", e)
		}

		s.changePolicy(checkedZone)
		all := s.since(0, "")
		if diff := diffs.Diff(first.Items, all[:2]); diff != "" || len(all) != 4 {
			t.Errorf("all events: got %d (-first +later):\n%s", len(all), diff)
		}
		one := readAs[page[event]](t, s.get("/events?since=2&limit=1"))
		if len(one.Items) != 1 || one.Items[0].Seq != 3 || one.Next == nil || *one.Next != "3" {
			t.Errorf("a page of one: got %+v want event 3 and more", one)
		}
		if got := s.since(4, "&wait=0"); len(got) != 0 {
			t.Errorf("after the last: got %v want none", got)
		}
		if got := s.since(0, "&kind=policy.weakened"); len(got) != 1 || got[0].Seq != 4 {
			t.Errorf("of a kind: got %v want event 4", got)
		}
		if printed := listed[event](in, "event", "list", "--team", "default"); len(printed) != 4 || printed[0].Seq != 1 {
			t.Errorf("dmarcd event list: got %v want all events, oldest first", printed)
		}
	})
}

// TestEventsAreStreamed reads a stream until the daemon stops, which must not wait for
// it.
func TestEventsAreStreamed(t *testing.T) {
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		s.verify("example.com", "conclusive")
		s.changePolicy(rejectZone)

		r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HTTP+s.prefix+"/events", http.NoBody))(t)
		r.Header.Set("Authorization", "Bearer "+in.token)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Last-Event-ID", "1")
		stream, err := http.DefaultClient.Do(r)
		musttest.Do(t, err)
		defer func() { _ = stream.Body.Close() }() // read to the end
		if got := stream.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type: got %q", got)
		}
		lines := bufio.NewScanner(stream.Body)
		next := func() (id, kind string, e event) {
			t.Helper()
			for lines.Scan() {
				name, value, _ := strings.Cut(lines.Text(), ": ")
				switch name {
				case "id":
					id = value
				case "event":
					kind = value
				case "data":
					musttest.Do(t, json.Unmarshal([]byte(value), &e))
					return id, kind, e
				}
			}
			t.Fatalf("the stream ended: %v", lines.Err())
			return "", "", event{}
		}
		if id, kind, e := next(); id != "2" || kind != "policy.strengthened" || e.Seq != 2 {
			t.Errorf("got %s %s %+v want event 2", id, kind, e)
		}
		s.changePolicy(checkedZone)
		for _, want := range []int64{3, 4} {
			if id, _, e := next(); e.Seq != want || id != fmt.Sprint(want) {
				t.Errorf("got %s %+v want event %d", id, e, want)
			}
		}
		s.Stop()
		for lines.Scan() {
			if text := lines.Text(); text != "" && !strings.HasPrefix(text, ":") {
				t.Errorf("after the stop: got %q", text)
			}
		}
	})
}
