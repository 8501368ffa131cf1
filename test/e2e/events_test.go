package e2e_test

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	diffs "github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

type event struct {
	Seq     int64     `json:"seq"`
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Domain  string    `json:"domain"`
	At      string    `json:"at"`
	Summary string    `json:"summary"`
	Data    eventData `json:"data"`
}

type eventData struct {
	Domain    string `json:"domain"`
	Link      string `json:"link"`
	FindingID string `json:"finding_id"`
	Before    string `json:"before"`
	After     string `json:"after"`
}

// happening is an event without names and time.
type happening struct {
	Kind, Before, After string
}

func (e event) happening() happening {
	h := happening{Kind: e.Kind, Before: e.Data.Before, After: e.Data.After}
	switch e.Kind { // the text of findings may change
	case "finding.appeared":
		h.After = e.Data.FindingID
	case "finding.resolved":
		h.Before = e.Data.FindingID
	}
	return h
}

// happened returns the events of a domain, sorted by kind, because the events of one
// check have the same time.
func (s *server) happened(name string) []happening {
	s.in.t.Helper()
	list := []happening{}
	for _, e := range all[event](s, "/events?domain="+name, 100) {
		if e.Domain != name {
			s.in.t.Errorf("events of %s: got one of %s", name, e.Domain)
		}
		list = append(list, e.happening())
	}
	slices.SortStableFunc(list, func(a, b happening) int { return strings.Compare(a.Kind, b.Kind) })
	return list
}

func (s *server) awaitEvents(name string, count int) {
	s.in.t.Helper()
	daemon.Eventually(s.in.t, fullCheckLimit, "events", func() bool { return len(s.happened(name)) >= count })
}

func TestScheduleReportsOfChanges(t *testing.T) {
	const loose = "v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"
	rows := []struct {
		name string
		zone string
		want []happening // sorted by kind
	}{
		{"a stricter policy", rejectZone, []happening{
			{"finding.resolved", "dmarc.policy_none", ""},
			{"policy.strengthened", "none", "reject"},
			{"record.changed", noneRecord, rejectRecord},
		}},
		{"an error", rejectZone + secondSPF, []happening{{"finding.appeared", "", "spf.multiple_records"}}},
		{"the error is resolved", rejectZone, []happening{{"finding.resolved", "spf.multiple_records", ""}}},
		{"a looser policy", strings.Replace(checkedZone, noneRecord, loose, 1), []happening{
			{"policy.weakened", "reject", "quarantine"},
			{"record.changed", rejectRecord, loose},
		}},
		{"no record", strings.Replace(checkedZone, "_dmarc.", "dmarc.", 1), []happening{
			{"finding.appeared", "", "dmarc.missing"},
			{"policy.weakened", "quarantine", ""},
			{"record.removed", loose, ""},
		}},
		{"a record again", checkedZone, []happening{
			{"finding.appeared", "", "dmarc.policy_none"},
			{"finding.resolved", "dmarc.missing", ""},
			{"record.appeared", "", noneRecord},
		}},
	}
	each(t, checkedZone, func(t *testing.T, in *installation) {
		s := in.serve(quick...)
		s.add("example.com")
		s.firstCheck("example.com")
		total := 0
		for _, row := range rows {
			in.setZone(row.zone)
			s.awaitEvents("example.com", total+len(row.want))
			events := all[event](s, "/events", 1000)
			var got []happening
			for _, e := range events[:len(events)-total] {
				got = append(got, e.happening())
			}
			slices.SortFunc(got, func(a, b happening) int { return strings.Compare(a.Kind, b.Kind) })
			if diff := diffs.Diff(row.want, got); diff != "" {
				t.Fatalf("%s: events (-want +got):\n%s", row.name, diff)
			}
			total = len(events)
		}
	})
}

func TestEventsAreFilteredAndPaged(t *testing.T) {
	const other = `
		_dmarc.example.net. TXT "v=DMARC1; p=none"
	`
	each(t, checkedZone+other, func(t *testing.T, in *installation) {
		s := in.serve()
		for _, name := range []string{"example.com", "example.net"} {
			s.add(name)
		}
		for _, zone := range []string{rejectZone, checkedZone + other, "", rejectZone} {
			in.setZone(zone)
			for _, name := range []string{"example.com", "example.net"} {
				s.verify(name, "conclusive")
			}
		}
		events := all[event](s, "/events", 1000)
		if !slices.IsSortedFunc(events, func(a, b event) int { return cmp.Compare(b.Seq, a.Seq) }) {
			t.Errorf("got %v want the newest first", events)
		}
		seen := map[string]bool{}
		for _, e := range events {
			if seen[e.ID] {
				t.Errorf("event %s is there twice", e.ID)
			}
			seen[e.ID] = true
		}
		rows := []struct {
			query    string
			retained func(e event) bool
		}{
			{"", func(event) bool { return true }},
			{"domain=example.com", func(e event) bool { return e.Domain == "example.com" }},
			{"domain=EXAMPLE.net.", func(e event) bool { return e.Domain == "example.net" }},
			{"kind=record.changed", func(e event) bool { return e.Kind == "record.changed" }},
			{"kind=record.removed", func(e event) bool { return e.Kind == "record.removed" }},
			{"kind=policy.strengthened&domain=example.com", func(e event) bool { return e.Kind == "policy.strengthened" && e.Domain == "example.com" }},
			{"kind=record.appeared&domain=example.net", func(e event) bool { return e.Kind == "record.appeared" && e.Domain == "example.net" }},
		}
		for _, row := range rows {
			want := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return !row.retained(e) })
			if len(want) == 0 {
				t.Fatalf("%s: the events have none of these: %v", row.query, events)
			}
			for _, limit := range []int{1, 2, len(want), 1000} {
				if diff := diffs.Diff(want, all[event](s, "/events?"+row.query, limit)); diff != "" {
					t.Errorf("%s, limit %d (-want +got):\n%s", row.query, limit, diff)
				}
			}
			if got := readAs[page[event]](t, s.get("/events?"+row.query)); got.Next != nil || !diffs.Equal(want, got.Items) {
				t.Errorf("%s, without a limit: got %v want all", row.query, got)
			}
		}
		for _, query := range []string{"domain=unknown.example", "kind=finding.resolved"} {
			s.get("/events?"+query).wantBody(t, `{"items":[],"next":null}`)
		}
	})
}

func badQueriesOfTheAdditions(t *testing.T, s *server) {
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	// after is a cursor, which begins with a mark of its list.
	after := func(list, position string) string {
		sum := sha256.Sum256([]byte(list))
		return "after=" + encoded(string(sum[:3])) + encoded(position)
	}
	cursors := func(list, other string) []string {
		return []string{
			"limit=0", "limit=1001", "limit=-1", "limit=1.5", "limit=ten", "limit=", "limit=99999999999999999999",
			"after=x", "after=example.com", "after=%00", after(list, "now"), after(list, "1794714845"),
			after(list, "1."), after(list, "99999999999999999999.1"), after(other, "1.1"), "limit=1;after=x", "limit=%zz",
		}
	}
	const events, checks = "/events", "/domains/{domain}/checks"
	filters := []string{
		"kind=", "kind=changed", "kind=RECORD.CHANGED", "kind=record.changed,record.removed",
		"since=", "since=-1", "since=x", "since=1&" + after(events, "1.1"), "wait=1", "since=0&wait=61", "since=0&wait=-1", "since=0&wait=x", "since=0&wait=",
		"domain=", "domain=example", "domain=a_b.example", "domain=*.example.com", "domain=192.0.2.1", "domain=example.com&kind=x",
	}
	s.add("example.com")
	for path, queries := range map[string][]string{
		"/events":                         slices.Concat(cursors(events, checks), filters),
		"/domains/example.com/checks":     cursors(checks, events),
		"/domains/unknown.example/checks": cursors(checks, events), // 422 comes before 404
	} {
		for _, query := range queries {
			s.get(path+"?"+query).wantStatus(t, http.StatusUnprocessableEntity)
		}
	}
}

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
