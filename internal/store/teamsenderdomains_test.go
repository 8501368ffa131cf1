package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// TestSenderDomains wants all domains of a team or of a tag, with their classes, and the facts of the
// latest check of each that is not known.
func TestSenderDomains(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team, other := newTeam(t, s, "acme"), newTeam(t, s, "other")
		addDomain(t, other, "other.example")
		const count = 120 // more than one query asks for
		want := make([]dmarcd.SenderDomain, count)
		for i := range want {
			want[i].Name = fmt.Sprintf("n%d.example", i)
			want[i].ID = addDomain(t, team, want[i].Name).ID
		}
		for i, at := range []time.Time{time.Unix(1e9, 0), time.Unix(2e9, 0)} {
			for n := i; n < count; n++ { // the first domain has one check, all others two
				check := dmarcd.Check{At: at, Conclusive: true, Facts: &dmarcd.Facts{Domain: want[n].Name, SPF: dmarcd.SPFFacts{Record: fmt.Sprint(i)}}}
				musttest.Get(team.SaveCheck(t.Context(), want[n].Name, check, dmarcd.Plan{}))(t)
			}
		}
		for n := range want {
			want[n].Check = musttest.Get(team.LatestCheck(t.Context(), want[n].Name))(t).ID
		}
		musttest.Do(t, team.SetSenderClass(t.Context(), "n7.example", "AS64496:yours", dmarcd.ClassSpoofing))
		want[7].Classes = map[string]dmarcd.Class{"AS64496:yours": dmarcd.ClassSpoofing}
		facts := make(map[dmarcd.CheckID]string)
		ask := func(team *store.Team) []dmarcd.SenderDomain {
			t.Helper()
			known := func(id dmarcd.CheckID) bool { return facts[id] != "" }
			return musttest.Get(team.SenderDomains(t.Context(), known, func(id dmarcd.CheckID, f *dmarcd.Facts) {
				if known(id) {
					t.Errorf("got the facts of check %s, which are known", id)
				}
				facts[id] = f.Domain + " " + f.SPF.Record
			}))(t)
		}
		first, last := want[0].Check, want[119].Check
		sorted := func(domains []dmarcd.SenderDomain) []dmarcd.SenderDomain {
			return slices.SortedFunc(slices.Values(domains), func(a, b dmarcd.SenderDomain) int { return strings.Compare(a.Name, b.Name) })
		}
		if diff := cmp.Diff(sorted(want), sorted(ask(team))); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if len(facts) != count || facts[first] != "n0.example 0" || facts[last] != "n119.example 1" {
			t.Errorf("got the facts %v", facts)
		}
		ask(team)
		if got := ask(team.Tagged("shop")); len(got) != 0 {
			t.Errorf("got %v of a tag that no domain has", got)
		}
	})
}
