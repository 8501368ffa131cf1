package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func TestTags(t *testing.T) {
	t.Parallel()
	s := newService(t, storetest.SQLite(t).Open(t, store.Options{}))
	s.add("example.com", "example.org")
	for i, domain := range []string{"example.com", "example.org"} {
		s.stored(aggregateXML(domain, domain, firstDay, row{domain, "none", "pass", 5 + i}))
	}
	set := func(domain, body string) answer {
		r := s.request(http.MethodPut, "/domains/"+domain+"/tags", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		return s.send(r)
	}
	want := wire.Tags{Tags: []string{"eu", "shop"}}
	for name, a := range map[string]answer{"set": set("example.com", `{"tags": ["Shop", "eu", "shop"]}`), "read": s.get("/domains/example.com/tags")} {
		if diff := cmp.Diff(want, read[wire.Tags](t, a, http.StatusOK)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	if got := read[page[wire.Tag]](t, s.get("/tags"), http.StatusOK).Items; !slices.Equal(got, []wire.Tag{{Tag: "eu", Domains: 1}, {Tag: "shop", Domains: 1}}) {
		t.Errorf("got %+v, want both tags", got)
	}
	first := read[page[wire.Tag]](t, s.get("/tags?limit=1"), http.StatusOK)
	if first.Next == nil || len(first.Items) != 1 {
		t.Fatalf("got %+v, want a page with one tag and a cursor", first)
	}
	set("example.com", `{"tags": ["shop"]}`) // a cursor leads on without the item that it was made of
	if rest := read[page[wire.Tag]](t, s.get("/tags?limit=1&after="+*first.Next), http.StatusOK); rest.Next != nil || len(rest.Items) != 1 || rest.Items[0].Tag != "shop" {
		t.Errorf("got %+v, want the other tag", rest)
	}
	set("example.com", `{"tags": ["eu", "shop"]}`)
	for _, body := range []string{`{}`, `{"tags": null}`, `{"tags": "shop"}`, `{"tags": ["a b"]}`} {
		if got := set("example.com", body).status; got != http.StatusUnprocessableEntity {
			t.Errorf("%s: got status %d, want 422", body, got)
		}
	}
	for query, items := range map[string]int{
		"/insights/daily?by=domain&tag=EU": 1, "/insights/daily?tag=eu": 1, "/insights/daily?tag=other": 0, "/insights/reports?tag=eu": 1,
		"/insights/advice?tag=eu": 1, "/insights/senders?by=header_from&tag=eu": 1, "/events?tag=eu": 0,
	} {
		if got := len(read[page[any]](t, s.get(query), http.StatusOK).Items); got != items {
			t.Errorf("%s: got %d items, want %d", query, got, items)
		}
	}
	for _, query := range []string{"/domains", "/events", "/insights/daily", "/insights/reports", "/insights/advice", "/insights/senders"} {
		if got := s.get(query + "?tag=a%20b").status; got != http.StatusUnprocessableEntity {
			t.Errorf("%s: got status %d for what is no tag, want 422", query, got)
		}
	}
	if got := read[[]wire.Domain](t, s.get("/domains?tag=shop&limit=1"), http.StatusOK); len(got) != 1 || got[0].Domain != "example.com" {
		t.Errorf("got %+v, want the domain with the tag", got)
	}
}
