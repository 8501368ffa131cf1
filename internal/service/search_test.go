package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSearchFinds looks for what users paste.
func TestSearchFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, service.CommandLine())
	for text, want := range map[string]service.Hit{
		"https://" + ours + "/contact": {Kind: service.HitDomain, Key: ours},
		"info@" + ours:                 {Kind: service.HitDomain, Key: ours},
		"192.0.2.1":                    {Kind: service.HitAddress, Key: "192.0.2.1"},
		"receiver.example":             {Kind: service.HitReport, Key: w.report.String()},
	} {
		hits, err := team.Search(t.Context(), text, 10)
		if err != nil || len(hits) != 1 || hits[0].Kind != want.Kind || hits[0].Key != want.Key {
			t.Errorf("%s: got %+v, %v, want %+v", text, hits, err, want)
		}
	}
	for _, text := range []string{"192.0.2.99", "192.0.2.1 198.51.100.7", "elsewhere.example", ours + " a..b"} {
		if hits, err := team.Search(t.Context(), text, 10); err != nil || len(hits) > 0 {
			t.Errorf("%s: got %+v, %v, want nothing", text, hits, err)
		}
	}
}

// TestSearchKinds finds each kind of thing by what names it.
func TestSearchKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	day := dmarcd.DayOf(time.Now())
	deliver := func(id string, day dmarcd.Day, records ...aggregate.Record) dmarcd.ReportID {
		report := storetest.Aggregate(id, ours, day, records...)
		report.Organization = "Old " + id
		receipts := musttest.Get(w.store.Team(w.team.ID).Receive(ctx, []*dmarcd.Delivery{storetest.Delivery(report)}))(t)
		return receipts[0][0].ID
	}
	letter := storetest.Passed(ours, 5)
	letter.DKIMResults[0].Domain = "letters.example"
	recent, last, old := deliver("ninety", day-90, letter), deliver("today", day, letter), deliver("ninety-one", day-91)
	team := w.with(w.asOwner(), func(o *service.Options) {
		o.Insight = insight.New(&senders.Atlas{}, senders.NewCatalogue([]senders.Sender{{Key: "letters", Name: "Letter Service", Domains: []string{"letters.example"}}}), nameless{}, nil)
	})
	for text, want := range map[string][]string{
		"":                       nil,
		"  \t":                   nil,
		"Letter serv":            {"sender letters"},
		"old":                    {"report " + last.String(), "report " + recent.String()},
		"ninety-one":             {"report " + old.String()},
		old.String():             {"report " + old.String()},
		"rep_1":                  nil,
		"ninety-on":              nil, // a part of an id is searched in the last 90 days
		"oda":                    {"report " + last.String()},
		"192.0":                  {"address 192.0.2.1"},
		"192.0.2.0/28":           {"address 192.0.2.1"},
		"192.0.3":                nil,
		"2001:db8:":              nil,
		"_domainkey.letters":     {"selector s1._domainkey.letters.example"},
		strings.Repeat("ü", 200): nil,
	} {
		hits, err := team.Search(ctx, text, 10)
		var got []string
		for _, hit := range hits {
			got = append(got, string(hit.Kind)+" "+hit.Key)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: got error %v and (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{strings.Repeat("ü", 201), "a\xff", "a\x00b"} {
		if _, err := team.Search(ctx, text, 10); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("%q: got %v, want %v", text, err, dmarcd.ErrInvalid)
		}
	}
	hits, err := team.Search(ctx, "today", 10)
	if err != nil || len(hits) != 1 || hits[0].Title != "Old today on "+ours || hits[0].Detail != "aggregate, "+phrase.Day(day)+", today" {
		t.Errorf("got %+v, %v; want title and detail of the report", hits, err)
	}
}
