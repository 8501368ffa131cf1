package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/musttest"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// TestDomainPostures lists what the advice of each domain says, once it was requested.
func TestDomainPostures(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		opened := db.Open(t, store.Options{})
		s := newService(t, opened, func(o *options) {
			o.Service = useCases(opened, usecase.Options{ReportDomain: "reports.example", Acceptor: o.Acceptor})
		})
		s.add("a.example", "b.example", "c.example", "shop.example")
		musttest.Do(t, s.team.SetTags(t.Context(), "shop.example", []string{"eu"}))
		for domain, policy := range map[string]string{"b.example": "none", "shop.example": "quarantine"} {
			check := facts.Check{At: time.Unix(1.7e9, 0), Conclusive: true, Usable: true, Record: "v=DMARC1; p=" + policy + "; t=y", RecordDomain: domain, Policy: policy, Grade: "B", Facts: &facts.Facts{Domain: domain}}
			musttest.Get(s.team.SaveCheck(t.Context(), domain, check, dmarcd.Plan{Next: time.Now().Add(time.Hour)}))(t)
		}
		s.stored(aggregateXML("1", "shop.example", dmarcd.DayOf(time.Now())-1, row{"shop.example", "none", "pass", 5}, row{"shop.example", "none", "fail", 20}))
		advice := read[page[wire.Advice]](t, s.get("/insights/advice?domain=shop.example"), http.StatusOK).Items[0]
		read[page[wire.Advice]](t, s.get("/insights/advice?domain=b.example"), http.StatusOK)

		all := read[page[wire.DomainPosture]](t, s.get("/insights/domains"), http.StatusOK)
		if len(all.Items) != 4 || all.Next != nil {
			t.Fatalf("got %+v, want four domains", all)
		}
		got := all.Items[3]
		if got.ComputedAt == nil || got.ReportAddress == nil {
			t.Fatalf("got %+v, want when it was computed, and the address", got)
		}
		shop := musttest.Get(s.team.Domain(t.Context(), "shop.example"))(t)
		want := wire.DomainPosture{
			Domain: "shop.example", Stage: &advice.Stage, Grade: new("B"), Policy: new("quarantine"), EffectivePolicy: new("none"), CheckedAt: new(wire.Time(time.Unix(1.7e9, 0))),
			ReportAddress: new(shop.ReportMailbox + "@reports.example"), Tags: []string{"eu"}, Messages: new(int64(25)), Yours: new(int64(5)), YoursPassing: new(int64(5)),
			NextAction: &wire.PostureAction{ID: advice.NextAction.ID, Title: advice.NextAction.Title}, ComputedAt: got.ComputedAt,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if got := all.Items[0]; got.Stage != nil || got.Messages != nil || got.NextAction != nil || got.Grade != nil || got.Policy != nil || got.ComputedAt != nil || got.CheckedAt != nil {
			t.Errorf("a new domain: got %+v, want null throughout", got)
		}

		names := func(query string) (list []string) {
			t.Helper()
			for after := ""; ; {
				part := read[page[wire.DomainPosture]](t, s.get("/insights/domains?"+query+after), http.StatusOK)
				for _, item := range part.Items {
					list = append(list, item.Domain[:1])
				}
				if part.Next == nil {
					return list
				}
				after = "&after=" + url.QueryEscape(*part.Next)
			}
		}
		for query, want := range map[string][]string{
			"limit=1": {"a", "b", "c", "s"}, "limit=2&sort=-name": {"s", "c", "b", "a"}, "limit=1&sort=grade": {"b", "s", "a", "c"}, "limit=1&sort=-messages": {"s", "b", "a", "c"},
			"limit=1&sort=policy": {"b", "s", "a", "c"}, "limit=3&sort=-stage": {"b", "s", "a", "c"}, "limit=1&sort=passing": {"s", "a", "b", "c"},
			"q=SHOP": {"s"}, "policy=none": {"b"}, "policy=unknown": {"a", "c"}, "policy=missing": nil, "grade=B": {"b", "s"}, "grade=unknown": {"a", "c"},
			"stage=unknown": {"a", "c"}, "stage=parked": nil, "tag=eu": {"s"}, "tag=other": nil, "q=example&policy=quarantine&grade=B&tag=eu": {"s"},
		} {
			if got := names(query); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", query, got, want)
			}
		}
		byGrade := read[page[wire.DomainPosture]](t, s.get("/insights/domains?limit=1&sort=grade"), http.StatusOK).Next
		for _, query := range []string{
			"policy=strict", "stage=begun", "grade=G", "sort=colour", "limit=0", "after=x", "tag=a%20b", "q=%00", "colour=red",
			"after=" + url.QueryEscape(*byGrade), "sort=-grade&after=" + url.QueryEscape(*byGrade),
		} {
			if got := s.get("/insights/domains?" + query).status; got != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422", query, got)
			}
		}
	})
}
