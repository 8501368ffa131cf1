package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/memory"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
	usecase "github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// nameless knows no address by name.
type nameless struct{}

func (nameless) Known(context.Context, dmarcd.TeamID, []netip.Addr) (map[netip.Addr]string, error) {
	return nil, nil
}

// newInsight knows one sender, which signs as letters.example.
func newInsight() *insight.Service {
	known := []senders.Sender{{Name: "Newsletters", Kind: senders.Service, Category: senders.Marketing, Domains: []string{"letters.example"}}}
	return insight.New(&senders.Atlas{}, senders.NewCatalogue(known), nameless{}, nil)
}

type senderItem struct {
	Key, Name                                                string
	Detail                                                   *string
	Total, Compliant, Delivered, Quarantined, Rejected, DKIM int64
	NonCompliant                                             int64 `json:"non_compliant"`
	SPF                                                      int64
	FirstDay                                                 string `json:"first_day"`
	LastDay                                                  string `json:"last_day"`
}

func (s senderItem) String() string {
	return fmt.Sprintf("%s (%s, %s) %d/%d, %d+%d+%d, dkim %d, spf %d, %s to %s", s.Key, s.Name, orNull(s.Detail), s.Compliant, s.Total,
		s.Delivered, s.Quarantined, s.Rejected, s.DKIM, s.SPF, s.FirstDay, s.LastDay)
}

func TestSenders(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		s.stored(aggregateXML("1", "example.com", firstDay, row{"example.com", "none", "pass", 5}, row{"a.example.com", "reject", "fail", 2}))
		s.stored(aggregateXML("2", "example.org", firstDay, row{"example.org", "quarantine", "fail", 10}))
		s.stored(aggregateXML("3", "example.com", firstDay+2, row{"example.com", "none", "pass", 4}))
		for _, tt := range []struct {
			name, query string
			want        []string
		}{
			{"of the team by network", "", []string{
				"-:others (Unknown networks (others), null) 0/12, 0+10+2, dkim 0, spf 0, 2024-10-04 to 2024-10-04",
				"-:yours (Unknown networks (yours), null) 9/9, 9+0+0, dkim 9, spf 0, 2024-10-04 to 2024-10-06",
			}},
			{"by address", "&by=address", []string{
				"192.0.2.1 (192.0.2.1, null) 9/19, 9+10+0, dkim 9, spf 0, 2024-10-04 to 2024-10-06",
				"192.0.2.2 (192.0.2.2, null) 0/2, 0+0+2, dkim 0, spf 0, 2024-10-04 to 2024-10-04",
			}},
			{"by From domain, of one domain", "&by=header_from&domain=EXAMPLE.com.", []string{
				"example.com (example.com, null) 9/9, 9+0+0, dkim 9, spf 0, 2024-10-04 to 2024-10-06",
				"a.example.com (a.example.com, null) 0/2, 0+0+2, dkim 0, spf 0, 2024-10-04 to 2024-10-04",
			}},
			{"by selector, from a day", "&by=selector&from=2024-10-05", []string{
				"s1._domainkey.example.com (s1._domainkey.example.com, null) 4/4, 4+0+0, dkim 4, spf 0, 2024-10-06 to 2024-10-06",
			}},
			{"by reporter, to a day", "&by=reporter&to=2024-10-04&domain=example.com", []string{
				"Receiver.example (Receiver.example, null) 5/7, 5+0+2, dkim 5, spf 0, 2024-10-04 to 2024-10-04",
			}},
			{"of an unknown domain", "&domain=unknown.example", nil},
		} {
			for _, limit := range []int{1, 100} {
				var got []string
				query := "?limit=" + itoa(limit) + tt.query
				for after := ""; ; {
					part := read[page[senderItem]](t, s.get("/insights/senders"+query+after), http.StatusOK)
					for _, item := range part.Items {
						got = append(got, item.String())
					}
					if part.Next == nil {
						break
					}
					after = "&after=" + *part.Next
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s, %d a page (-want +got):\n%s", tt.name, limit, diff)
				}
			}
		}
		for _, query := range []string{"limit=0", "after=x", "by=source", "by=", "domain=-", "from=x", "from=2024-10-05&to=2024-10-04"} {
			if got := s.get("/insights/senders?" + query); got.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: got status %d, want 422: %s", query, got.status, got.body)
			}
		}
	})
}

// TestSendersAddUp checks that the items of every grouping come to what the counters
// say.
func TestSendersAddUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := newService(t, db.Open(t, store.Options{}))
		s.add("example.com", "example.org")
		for i := range 10 {
			from := []string{"example.com", "mail.example.com", "example.org"}[i%3]
			s.stored(aggregateXML(itoa(i), "example.com", firstDay+dmarcd.Day(i), row{from, "none", "pass", i}, row{from, "reject", "fail", 2 * i}, row{"unclaimed.example", "none", "pass", 1}))
		}
		for _, filter := range []string{"", "domain=example.com", "domain=example.org", "from=2024-10-07&to=2024-10-09"} {
			path := "/reports?" + filter
			if filter != "" && filter[0] == 'd' {
				path = "/reports/" + filter[len("domain="):]
			}
			want := read[senderItem](t, s.get(path), http.StatusOK)
			for _, group := range insight.Groups() {
				var total, compliant int64
				for _, item := range read[page[senderItem]](t, s.get("/insights/senders?by="+string(group)+"&"+filter), http.StatusOK).Items {
					total += item.Total
					compliant += item.Compliant
				}
				if total != want.Total || compliant != want.Compliant {
					t.Errorf("by %s, %s: got %d of %d compliant, want %d of %d", group, filter, compliant, total, want.Compliant, want.Total)
				}
			}
		}
	})
}

// TestSendersWithoutMemory checks the answer while other large requests hold the memory.
func TestSendersWithoutMemory(t *testing.T) {
	t.Parallel()
	budget := memory.NewBudget(1 << 20)
	db := storetest.SQLite(t).Open(t, store.Options{})
	s := newService(t, db, func(o *options) {
		o.Service = useCases(db, usecase.Options{Insight: insight.New(&senders.Atlas{}, senders.NewCatalogue(nil), nameless{}, budget)})
	})
	s.add("example.com")
	_, release, err := budget.AcquireAll(t.Context(), s.id)
	musttest.Do(t, err)
	const mayWait = 64
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range mayWait {
		waiting.Go(func() {
			err := memory.ErrBusy // while the test itself waits
			for errors.Is(err, memory.ErrBusy) {
				_, err = budget.Acquire(ctx, s.id, 1)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that it waits", err)
			}
		})
	}
	for full := false; !full; { // until as many wait as may
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, err := budget.Acquire(soon, s.id, 1)
		cancel()
		full = errors.Is(err, memory.ErrBusy)
	}
	got := s.get("/insights/senders")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d with Retry-After %q, want 503 and when to try again", got.status, got.header.Get("Retry-After"))
	}
	cancel()
	waiting.Wait()
	release()
	if got := s.get("/insights/senders"); got.status != http.StatusOK {
		t.Errorf("once the memory is free: got %d", got.status)
	}
}

// TestFirstAndLastSeen asks for a few days of a sender: when it was seen first and last does
// not depend on them.
func TestFirstAndLastSeen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		st := db.Open(t, store.Options{})
		s := newService(t, st)
		s.add("example.com")
		for day := range dmarcd.Day(3) {
			s.stored(aggregateXML(fmt.Sprint(day), "example.com", firstDay+day, row{"example.com", "none", "pass", 5}))
		}
		_, err := st.UpdateSenders(t.Context(), func(ctx context.Context, team *store.Team, days dmarcd.Days, save func([]dmarcd.Sender) error, saveDays func([]dmarcd.DomainDay) error) error {
			return newInsight().FindSenders(ctx, team, days, save, saveDays)
		})
		musttest.Do(t, err)
		type seen struct {
			FirstDay  string  `json:"first_day"`
			FirstSeen *string `json:"first_seen"`
			LastSeen  *string `json:"last_seen"`
		}
		first, last := "2024-10-04", "2024-10-06"
		for query, want := range map[string]seen{
			"": {"2024-10-05", &first, &last}, "&domain=example.com": {"2024-10-05", &first, &last}, "&by=address": {"2024-10-05", nil, nil},
		} {
			got := read[page[seen]](t, s.get("/insights/senders?from=2024-10-05&to=2024-10-05"+query), http.StatusOK)
			if diff := cmp.Diff([]seen{want}, got.Items); diff != "" {
				t.Errorf("%s: -want +got\n%s", query, diff)
			}
		}
	})
}
