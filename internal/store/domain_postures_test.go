package store_test

import (
	"context"
	"errors"
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

// savePosture stores the posture of a domain.
func savePosture(t testing.TB, team *store.Team, name string, p dmarcd.Posture) {
	t.Helper()
	domain := musttest.Get(team.Domain(t.Context(), name))(t)
	musttest.Do(t, team.SavePostures(t.Context(), []store.StoredPosture{{Domain: domain.ID, Posture: p}}))
}

// postureTeam has the domains of overviewTeam with postures, except new.example.
func postureTeam(t *testing.T, s *store.Store) *store.Team {
	t.Helper()
	team := overviewTeam(t, s)
	for name, p := range map[string]dmarcd.Posture{
		"good.example":   {Stage: dmarcd.StageEnforced, MailCounts: dmarcd.MailCounts{Messages: 100, Yours: 90, YoursPassing: 90}},
		"better.example": {Stage: dmarcd.StagePartial, Action: dmarcd.ActionTighten, Title: "Publish p=reject", MailCounts: dmarcd.MailCounts{Messages: 5, Yours: 4, YoursPassing: 3}},
		"bad.example":    {Stage: dmarcd.StageMonitoring, Action: dmarcd.ActionFix, Title: "Fix a sender", MailCounts: dmarcd.MailCounts{Messages: 200}},
		"bare.example":   {Stage: dmarcd.StageNone, Action: dmarcd.ActionPublish, Title: "Publish a DMARC record"},
	} {
		p.ComputedAt = time.Unix(1e9, 0).UTC()
		savePosture(t, team, name, p)
	}
	return team
}

// shortNames are the names of domains without their last label.
func shortNames(rows []store.PostureRow) string {
	var names []string
	for _, row := range rows {
		names = append(names, strings.TrimSuffix(row.Name, ".example"))
	}
	return strings.Join(names, " ")
}

func TestPostures(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := postureTeam(t, db.Open(t, store.Options{}))
		musttest.Do(t, team.SetTags(t.Context(), "bad.example", []string{"shop"}))
		for _, test := range []struct {
			name   string
			filter store.PostureFilter
			want   string
		}{
			{"by name", store.PostureFilter{}, "bad bare better good new"},
			{"from the last name on", store.PostureFilter{Sort: "-name"}, "new good better bare bad"},
			{"by nothing that is known", store.PostureFilter{Sort: "-colour"}, "new good better bare bad"},
			{"the best grade first", store.PostureFilter{Sort: "grade"}, "good better bad bare new"},
			{"the worst grade first, none last", store.PostureFilter{Sort: "-grade"}, "bad bare better good new"},
			{"no policy first", store.PostureFilter{Sort: "policy"}, "bare bad better good new"},
			{"the strictest policy first", store.PostureFilter{Sort: "-policy"}, "good better bad bare new"},
			{"the first stage first", store.PostureFilter{Sort: "stage"}, "bare bad better good new"},
			{"the last stage first, none last", store.PostureFilter{Sort: "-stage"}, "good better bad bare new"},
			{"the most messages first", store.PostureFilter{Sort: "-messages"}, "bad good better bare new"},
			{"passing least first, none last", store.PostureFilter{Sort: "passing"}, "better good bad bare new"},
			{"a part of the name in any case", store.PostureFilter{Search: "ETTER.Ex"}, "better"},
			{"what would be a pattern elsewhere", store.PostureFilter{Search: "%"}, ""},
			{"a policy", store.PostureFilter{Policy: "quarantine"}, "better"},
			{"no policy", store.PostureFilter{Policy: store.Missing}, "bare"},
			{"a policy that is not known", store.PostureFilter{Policy: store.Unknown}, "new"},
			{"a grade", store.PostureFilter{Grade: "F"}, "bad bare"},
			{"no grade", store.PostureFilter{Grade: store.Unknown}, "new"},
			{"a stage", store.PostureFilter{Stage: "monitoring"}, "bad"},
			{"no stage", store.PostureFilter{Stage: store.Unknown}, "new"},
			{"something to do", store.PostureFilter{Next: store.NextAct}, "bad bare better"},
			{"nothing to do", store.PostureFilter{Next: store.NextNothing}, "good"},
			{"a next step that is not known", store.PostureFilter{Next: store.Unknown}, "new"},
			{"all at once", store.PostureFilter{Search: "ba", Policy: "none", Grade: "F", Stage: "monitoring", Sort: "-messages"}, "bad"},
		} {
			// One page, pages of two after the row before, and pages of two by number are the same.
			whole := test.filter
			whole.Limit = 10
			got := musttest.Get(team.Postures(t.Context(), whole))(t)
			if names := shortNames(got); names != test.want {
				t.Errorf("%s: got %q, want %q", test.name, names, test.want)
			}
			if len(got) > 1 {
				from := whole
				from.After = &got[1].Position
				from.After.Inclusive = true
				if names, want := shortNames(musttest.Get(team.Postures(t.Context(), from))(t)), shortNames(got[1:]); names != want {
					t.Errorf("%s: got %q from the second row on, want %q", test.name, names, want)
				}
			}
			var after, numbered []store.PostureRow
			part := test.filter
			for part.Limit = 2; ; part.After = &after[len(after)-1].Position {
				rows := musttest.Get(team.Postures(t.Context(), part))(t)
				if len(rows) == 0 {
					break
				}
				after = append(after, rows...)
			}
			for page := test.filter; len(numbered) == page.Offset; page.Offset += 2 {
				page.Limit = 2
				numbered = append(numbered, musttest.Get(team.Postures(t.Context(), page))(t)...)
			}
			if one, two := shortNames(after), shortNames(numbered); one != test.want || two != test.want {
				t.Errorf("%s: got %q and %q in parts, want %q", test.name, one, two, test.want)
			}
			counts := musttest.Get(team.PostureCounts(t.Context(), test.filter))(t)
			if want := map[string]int{"": 5, "ba": 2, "ETTER.Ex": 1}[test.filter.Search]; countOf(counts) != want {
				t.Errorf("%s: got counts %+v, want those of %d domains", test.name, counts, want)
			}
		}
		tagged := team.Tagged("shop")
		if got, n := shortNames(musttest.Get(tagged.Postures(t.Context(), store.PostureFilter{Limit: 10}))(t)), countOf(musttest.Get(tagged.PostureCounts(t.Context(), store.PostureFilter{}))(t)); got != "bad" || n != 1 {
			t.Errorf("with a tag: got %q of %d, want bad", got, n)
		}
	})
}

// countOf sums counts.
func countOf(counts []store.PostureCount) (all int) {
	for _, c := range counts {
		all += c.Domains
	}
	return all
}

// TestPosturesReportAll compares all fields of a row, and what is counted.
func TestPosturesReportAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		team := postureTeam(t, db.Open(t, store.Options{}))
		musttest.Do(t, team.SetTags(t.Context(), "better.example", []string{"eu", "shop"}))
		got := musttest.Get(team.Postures(t.Context(), store.PostureFilter{Search: "better", Limit: 1}))(t)
		want := []store.PostureRow{{
			Domain: musttest.Get(team.Domain(t.Context(), "better.example"))(t), Tags: []string{"eu", "shop"}, Position: store.PosturePosition{Name: "better.example"},
			Posture: dmarcd.Posture{
				Stage: dmarcd.StagePartial, Action: dmarcd.ActionTighten, Title: "Publish p=reject",
				MailCounts: dmarcd.MailCounts{Messages: 5, Yours: 4, YoursPassing: 3}, ComputedAt: time.Unix(1e9, 0).UTC(),
			},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if diff := cmp.Diff([]store.PostureCount{{Policy: "quarantine", Grade: "A", Stage: "partial", Next: "act", Domains: 1}}, musttest.Get(team.PostureCounts(t.Context(), store.PostureFilter{Search: "better"}))(t)); diff != "" {
			t.Errorf("counts: -want +got\n%s", diff)
		}
	})
}

// TestSavePostures keeps the posture that was computed last, ignores unknown domains, and removes the
// posture with its domain.
func TestSavePostures(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		team := newTeam(t, s, "a")
		addDomain(t, team, "a.example")
		domain := musttest.Get(team.Domain(t.Context(), "a.example"))(t)
		stored := func() dmarcd.Posture {
			t.Helper()
			return musttest.Get(team.StoredPostures(t.Context(), []dmarcd.DomainID{domain.ID, 7}))(t)[domain.ID].Posture
		}
		for _, step := range []struct {
			at    int64
			stage dmarcd.Stage
			want  dmarcd.Stage
		}{{100, dmarcd.StageNone, dmarcd.StageNone}, {200, dmarcd.StagePartial, dmarcd.StagePartial}, {150, dmarcd.StageNone, dmarcd.StagePartial}, {200, dmarcd.StageEnforced, dmarcd.StageEnforced}} {
			posture := dmarcd.Posture{Stage: step.stage, ComputedAt: time.Unix(step.at, 0)}
			musttest.Do(t, team.SavePostures(t.Context(), []store.StoredPosture{{Domain: 7, Posture: posture}, {Domain: domain.ID, Posture: posture}}))
			if got := stored().Stage; got != step.want {
				t.Errorf("%s computed at %d: got %s, want %s", step.stage, step.at, got, step.want)
			}
		}
		rows := func() (n int) {
			t.Helper()
			musttest.Do(t, db.SQL(t).QueryRowContext(t.Context(), `SELECT COUNT(*) FROM postures`).Scan(&n))
			return n
		}
		if got := rows(); got != 1 {
			t.Errorf("got %d postures, want none of an unknown domain", got)
		}
		musttest.Do(t, team.DeleteDomain(t.Context(), "a.example"))
		savePosture := team.SavePostures(t.Context(), []store.StoredPosture{{Domain: domain.ID, Posture: dmarcd.Posture{Stage: dmarcd.StageNone, ComputedAt: time.Unix(1e9, 0)}}})
		if got := stored().Stage; savePosture != nil || got != dmarcd.StageEnforced {
			t.Errorf("after its domain was deleted: got %s, %v", got, savePosture)
		}
		for more := true; more; {
			more = musttest.Get(s.Purge(t.Context()))(t)
		}
		if got := rows(); got != 0 {
			t.Errorf("got %d postures after the purge, want none", got)
		}
	})
}

// manyPostures adds domains with checks and postures of each kind.
func manyPostures(t testing.TB, team *store.Team, domains int) {
	t.Helper()
	var names []string
	for i := range domains {
		names = append(names, fmt.Sprintf("d%05d.example", i))
	}
	musttest.Get(team.AddDomains(t.Context(), names, time.Time{}))(t)
	stages := []dmarcd.Stage{dmarcd.StageNone, dmarcd.StageMonitoring, dmarcd.StagePartial, dmarcd.StageEnforced, dmarcd.StageParked}
	var postures []store.StoredPosture
	for after := ""; ; {
		some := musttest.Get(team.Domains(t.Context(), after, 1000))(t)
		if len(some) == 0 {
			break
		}
		for _, d := range some {
			n := int64(len(postures))
			postures = append(postures, store.StoredPosture{Domain: d.ID, Posture: dmarcd.Posture{
				Stage: stages[n%5], Title: "Publish a DMARC record", MailCounts: dmarcd.MailCounts{Messages: n * 7919 % 10007, Yours: n, YoursPassing: n / 2}, ComputedAt: time.Unix(1e9, 0),
			}})
		}
		after = some[len(some)-1].Name
	}
	musttest.Do(t, team.SavePostures(t.Context(), postures))
}

// BenchmarkPostures lists 50 of 10,000 domains, and reports the 99th percentile.
func BenchmarkPostures(b *testing.B) {
	for _, engine := range []func(testing.TB) storetest.DB{storetest.SQLite, storetest.Postgres} {
		db := engine(b)
		s := db.Open(b, store.Options{})
		team := s.Team(storetest.Team(b, s, "a").ID)
		manyPostures(b, team, 10_000)
		musttest.Get(db.SQL(b).ExecContext(b.Context(), `UPDATE domains SET known_at = 1, checked_at = 1, record = 'v=DMARC1; p=none; rua=mailto:reports@reports.example',
			policy = CASE id % 3 WHEN 0 THEN 'none' WHEN 1 THEN 'reject' ELSE 'quarantine' END, grade = CASE id % 4 WHEN 0 THEN 'A' WHEN 1 THEN 'B' ELSE 'F' END`))(b)
		for _, filter := range []store.PostureFilter{{}, {Search: "99"}} {
			b.Run(fmt.Sprintf("%s/counts%+v", db.Engine, filter), func(b *testing.B) {
				for b.Loop() {
					if got, err := team.PostureCounts(b.Context(), filter); err != nil || len(got) < 2 {
						b.Fatalf("got %+v, %v; want counts", got, err)
					}
				}
			})
		}
		for _, filter := range []store.PostureFilter{{}, {Sort: "-messages"}, {Sort: "passing", Offset: 5000}, {Stage: "partial", Sort: "-grade"}, {Search: "99"}} {
			filter.Limit = 50
			b.Run(fmt.Sprintf("%s/%+v", db.Engine, filter), func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					begin := time.Now()
					if got, err := team.Postures(b.Context(), filter); err != nil || len(got) != 50 {
						b.Fatalf("got %d rows, %v; want 50", len(got), err)
					}
					took = append(took, time.Since(begin))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
	}
}

// postureAttacks are attacks on the methods about postures and many domains.
var postureAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"Postures": func(ctx context.Context, other *store.Team, v victim) error {
		list, err := other.Postures(ctx, store.PostureFilter{Search: v.domain.Name, Limit: 100})
		return wantNone(len(list), err)
	},
	"PostureCounts": func(ctx context.Context, other *store.Team, v victim) error {
		counts, err := other.PostureCounts(ctx, store.PostureFilter{Search: v.domain.Name})
		return wantNone(len(counts), err)
	},
	"StoredPostures": func(ctx context.Context, other *store.Team, v victim) error {
		postures, err := other.StoredPostures(ctx, []dmarcd.DomainID{v.domain.ID})
		return wantNone(len(postures), err)
	},
	"SavePostures": func(ctx context.Context, other *store.Team, v victim) error {
		err := other.SavePostures(ctx, []store.StoredPosture{{Domain: v.domain.ID, Posture: dmarcd.Posture{Stage: "forged", ComputedAt: time.Unix(2e9, 0)}}})
		if err != nil {
			return err
		}
		postures, err := other.StoredPostures(ctx, []dmarcd.DomainID{v.domain.ID})
		return wantNone(len(postures), err)
	},
	"AddNewDomains": func(ctx context.Context, other *store.Team, v victim) error {
		added, err := other.AddNewDomains(ctx, []string{v.domain.Name}, time.Time{})
		if err != nil || len(added) != 1 {
			return errors.Join(err, errors.New("the victim's name was not free for another team"))
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"DeleteDomains": func(ctx context.Context, other *store.Team, v victim) error {
		deleted, err := other.DeleteDomains(ctx, []string{v.domain.Name}, func([]string) dmarcd.AuditEntry { return dmarcd.AuditEntry{} })
		return wantNone(len(deleted), err)
	},
	"TagDomains": func(ctx context.Context, other *store.Team, v victim) error {
		changed, err := other.TagDomains(ctx, []string{v.domain.Name}, []string{"theirs"}, nil)
		return wantNone(changed, err)
	},
	"CheckSoon": func(ctx context.Context, other *store.Team, v victim) error {
		due, err := other.CheckSoon(ctx, []string{v.domain.Name})
		return wantNone(due, err)
	},
}
