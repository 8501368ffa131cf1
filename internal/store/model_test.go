package store_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// move is one operation on a team. Which fields are set depends on the operation.
type move struct {
	what    string // receive, add, delete, exclude, include, remove, all, purge, rollups, wait, expire, freeze
	sent    []sending
	domains []string
	days    int
	which   int // the index of the report among the existing ones
}

// sending is a report of some days ago.
type sending struct {
	id, policy     string
	ago            int
	records        []aggregate.Record
	authentication dmarcd.Authentication
}

// delivery is the report in a mail with that authentication result.
func (s sending) delivery(now dmarcd.Day) *dmarcd.Delivery {
	delivery := storetest.Delivery(s.report(now))
	delivery.Intake = dmarcd.IntakeSMTP
	delivery.SetAuthentication(s.authentication)
	return delivery
}

func (s sending) report(now dmarcd.Day) dmarcd.NewReport {
	return storetest.Aggregate(s.id, s.policy, now-dmarcd.Day(s.ago), s.records...)
}

// moves draws random operations. There are few names and ids, so that most of them affect existing
// data.
func moves() *rapid.Generator[[]move] {
	domain := rapid.SampledFrom([]string{"example.com", "a.example.com", "b.a.example.com", "example.org"})
	from := rapid.SampledFrom([]string{"example.com", "www.example.com", "a.example.com", "x.b.a.example.com", "example.org", "strange.example", ""})
	record := rapid.Custom(func(t *rapid.T) aggregate.Record {
		kind := rapid.SampledFrom([]func(string, int64) aggregate.Record{storetest.Passed, storetest.Failed}).Draw(t, "kind")
		return kind(from.Draw(t, "from"), rapid.SampledFrom([]int64{0, 1, 5, 2000, 3000, dmarcd.MaxReleasedMessages / 3}).Draw(t, "count"))
	})
	sent := rapid.Custom(func(t *rapid.T) sending {
		return sending{
			id:      rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "id"),
			policy:  rapid.SampledFrom([]string{"example.com", "b.a.example.com", "strange.example"}).Draw(t, "policy"),
			ago:     rapid.IntRange(0, 9).Draw(t, "ago"),
			records: rapid.SliceOfN(record, 0, 3).Draw(t, "records"),
			authentication: rapid.SampledFrom([]dmarcd.Authentication{
				{}, {Genuine: dmarcd.GenuineNo}, {Genuine: dmarcd.GenuineYes, Domain: "mail.receiver.example"}, {Genuine: dmarcd.GenuineYes, Domain: "evil.example"},
			}).Draw(t, "authentication"),
		}
	})
	one := rapid.Custom(func(t *rapid.T) move {
		return move{
			what: rapid.SampledFrom([]string{
				"receive", "receive", "receive", "receive", "add", "add", "delete", "exclude", "exclude", "include", "include", "remove", "all",
				"purge", "rollups", "rollups", "wait", "expire", "freeze", "freeze",
			}).Draw(t, "what"),
			sent:    rapid.SliceOfN(sent, 1, 3).Draw(t, "sent"),
			domains: rapid.SliceOfN(domain, 1, 3).Draw(t, "domains"),
			days:    rapid.IntRange(1, 5).Draw(t, "days"),
			which:   rapid.IntRange(0, 5).Draw(t, "which"),
		}
	})
	return rapid.SliceOfN(one, 1, 20)
}

// model is what a team should have.
type model struct {
	domains  map[string]bool
	versions []*modelVersion
}

type modelVersion struct {
	key, content   dmarcd.Hash
	authentication dmarcd.Authentication
	standing       dmarcd.Standing
	id             dmarcd.ReportID
	state          dmarcd.ReportState
	day            dmarcd.Day
	shares         []*modelShare
}

type modelShare struct {
	from, policy string
	sum          dmarcd.Summary
	owner        string // "" for none yet
	deleted      bool   // its owner is deleted
}

// owner returns the nearest domain above a From domain, else above a policy domain.
func (m *model) owner(from, policy string) string {
	for _, name := range []string{from, policy} {
		nearest := ""
		for domain := range m.domains {
			if (name == domain || strings.HasSuffix(name, "."+domain)) && len(domain) > len(nearest) {
				nearest = domain
			}
		}
		if nearest != "" {
			return nearest
		}
	}
	return ""
}

func (m *model) receive(delivery *dmarcd.Delivery) dmarcd.ReceiptStatus {
	report, authentication := delivery.Reports[0], delivery.Authentication
	status := dmarcd.Stored
	var current *modelVersion
	for _, v := range m.versions {
		switch {
		case v.key != report.Key:
		case v.content == report.Content:
			return dmarcd.Duplicate
		case v.state == dmarcd.ReportCounted || v.state == dmarcd.ReportExcluded:
			current = v
		}
	}
	version := &modelVersion{
		key: report.Key, content: report.Content, authentication: authentication, standing: report.Standing,
		day: dmarcd.DayOf(report.Begin), state: dmarcd.ReportCounted,
	}
	switch {
	case report.HeldReason != "", current != nil && !dmarcd.MayReplace(authentication, version.standing, current.authentication, current.standing):
		version.state, status = dmarcd.ReportHeld, dmarcd.Held
	case current != nil:
		version.state, status = current.state, dmarcd.Replaced
		current.state = dmarcd.ReportReplaced
	}
	claimed := false
	for _, share := range report.Shares {
		owner := m.owner(share.From, report.Domain)
		claimed = claimed || owner != ""
		version.shares = append(version.shares, &modelShare{from: share.From, policy: report.Domain, sum: share.Summary, owner: owner})
	}
	m.versions = append(m.versions, version)
	if status == dmarcd.Stored && !claimed {
		return dmarcd.Unclaimed
	}
	return status
}

// setCounted includes a version instead of the current one, or excludes it.
func (m *model) setCounted(v *modelVersion, counted bool) {
	switch {
	case counted:
		for _, other := range m.versions {
			if other != v && other.key == v.key && (other.state == dmarcd.ReportCounted || other.state == dmarcd.ReportExcluded) {
				other.state = dmarcd.ReportReplaced
			}
		}
		v.state = dmarcd.ReportCounted
	case v.state == dmarcd.ReportCounted:
		v.state = dmarcd.ReportExcluded
	}
}

func (m *model) each(f func(*modelVersion, *modelShare)) {
	for _, version := range m.versions {
		for _, share := range version.shares {
			f(version, share)
		}
	}
}

func (m *model) add(names []string) {
	for _, name := range names {
		m.domains[name] = true
	}
	m.each(func(_ *modelVersion, share *modelShare) {
		if share.owner == "" {
			share.owner = m.owner(share.from, share.policy)
		}
	})
}

func (m *model) delete(name string) {
	delete(m.domains, name)
	m.each(func(_ *modelVersion, share *modelShare) { share.deleted = share.deleted || share.owner == name })
	m.versions = slices.DeleteFunc(m.versions, func(v *modelVersion) bool {
		return !slices.ContainsFunc(v.shares, func(share *modelShare) bool { return !share.deleted })
	})
}

func (m *model) expire(before dmarcd.Day) {
	m.versions = slices.DeleteFunc(m.versions, func(v *modelVersion) bool { return v.day < before })
}

// counted returns the counts of each domain by day.
func (m *model) counted() map[string]dmarcd.Summary {
	sums := make(map[string]dmarcd.Summary)
	m.each(func(version *modelVersion, share *modelShare) {
		if share.owner == "" || share.deleted || version.state != dmarcd.ReportCounted || share.sum.Total() == 0 {
			return
		}
		for _, key := range []string{share.owner + " " + version.day.String(), share.owner, version.day.String(), ""} {
			sum := sums[key]
			sum.Add(share.sum)
			sums[key] = sum
		}
	})
	return sums
}

// countedBy returns the same from the store, without zeros.
func countedBy(ctx context.Context, team *store.Team) (map[string]dmarcd.Summary, error) {
	sums := make(map[string]dmarcd.Summary)
	var err error
	note := func(key string, sum dmarcd.Summary, failed error) {
		err = cmp.Or(err, failed)
		if sum != (dmarcd.Summary{}) {
			sums[key] = sum
		}
	}
	domains, failed := team.Domains(ctx, "", 100)
	note("", dmarcd.Summary{}, failed)
	for _, domain := range domains {
		sum, failed := team.DomainSummary(ctx, domain.Name, dmarcd.Days{})
		note(domain.Name, sum, failed)
	}
	byDomain, failed := team.DailyByDomain(ctx, dmarcd.Days{}, store.DailyCursor{}, 1000)
	note("", dmarcd.Summary{}, failed)
	for _, day := range byDomain {
		note(day.Domain+" "+day.Day.String(), day.Summary, nil)
	}
	daily, failed := team.Daily(ctx, dmarcd.Days{}, 1000)
	note("", dmarcd.Summary{}, failed)
	for _, day := range daily {
		note(day.Day.String(), day.Summary, nil)
	}
	sum, failed := team.Summary(ctx, dmarcd.Days{})
	note("", sum, failed)
	return sums, err
}

// storedDays is the retention of the model.
const storedDays = 8

// play applies the moves to a new team and returns the differences from the model.
func (in *inbox) play(ctx context.Context, moves []move) error {
	created, err := in.store.CreateTeam(ctx, fmt.Sprint("team ", in.teams.Add(1)), true)
	if err != nil {
		return err
	}
	team, m := in.store.Team(created.ID), &model{domains: make(map[string]bool)}
	states := make(map[dmarcd.SentState][]string)
	for i, move := range moves {
		if err := in.make(ctx, team, m, move); err != nil {
			return fmt.Errorf("move %d, %+v: %w", i, move, err)
		}
		problem, err := in.store.Integrity(ctx)
		if err != nil || problem != "" {
			return fmt.Errorf("move %d, %+v: integrity: %s, %w", i, move, problem, err)
		}
		got, err := countedBy(ctx, team)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(m.counted(), got); diff != "" {
			return fmt.Errorf("move %d, %+v (-want +got):\n%s", i, move, diff)
		}
		records, err := rollupsReportTheRecords(ctx, team)
		if err != nil {
			return fmt.Errorf("move %d, %+v: %w", i, move, err)
		}
		state, err := team.SentState(ctx, "", dmarcd.Days{})
		if err != nil {
			return err
		}
		if before, known := states[state]; known && !slices.Equal(before, records) {
			return fmt.Errorf("move %d, %+v: the records are other ones in the same state %+v (-before +after):\n%s", i, move, state, gocmp.Diff(before, records))
		}
		states[state] = records
		reports, err := team.Reports(ctx, store.ReportFilter{}, 0, 1000)
		if err != nil || len(reports) != len(m.versions) {
			return fmt.Errorf("move %d, %+v: got %d reports, want %d; %w", i, move, len(reports), len(m.versions), err)
		}
		for _, report := range reports {
			at := slices.IndexFunc(m.versions, func(v *modelVersion) bool { return v.id == report.ID })
			if at < 0 || m.versions[at].state != report.State {
				return fmt.Errorf("move %d, %+v: report %s is %s, and not what it should be", i, move, report.ID, report.State)
			}
		}
	}
	return nil
}

// rollupsReportTheRecords compares a scan of all domains, which reads rollups where there are some,
// with scans of each domain, which read rows. It returns the records.
func rollupsReportTheRecords(ctx context.Context, team *store.Team) ([]string, error) {
	got, err := sentBy(ctx, team, "", dmarcd.Days{})
	if err != nil {
		return nil, err
	}
	domains, err := team.Domains(ctx, "", 100)
	if err != nil {
		return nil, err
	}
	var want []string
	for _, domain := range domains {
		lines, err := sentBy(ctx, team, domain.Name, dmarcd.Days{})
		if err != nil {
			return nil, err
		}
		want = append(want, lines...)
	}
	slices.Sort(want)
	if diff := gocmp.Diff(want, got); diff != "" {
		return nil, fmt.Errorf("records (-want +got):\n%s", diff)
	}
	return got, nil
}

// make applies a move to the team and to the model.
func (in *inbox) make(ctx context.Context, team *store.Team, m *model, move move) error {
	now := dmarcd.DayOf(in.clock.Now())
	switch move.what {
	case "receive":
		var deliveries []*dmarcd.Delivery
		for _, s := range move.sent {
			deliveries = append(deliveries, s.delivery(now))
		}
		receipts, err := team.Receive(ctx, deliveries)
		if err != nil {
			return err
		}
		for i, s := range move.sent {
			if got, want := receipts[i][0].Status, m.receive(s.delivery(now)); got != want {
				return fmt.Errorf("report %d of the batch is %s, want %s", i, got, want)
			}
			if receipts[i][0].Status != dmarcd.Duplicate {
				m.versions[len(m.versions)-1].id = receipts[i][0].ID
			}
		}
		return nil
	case "add":
		m.add(move.domains)
		_, err := team.AddDomains(ctx, move.domains, time.Time{})
		return err
	case "delete":
		name := move.domains[0]
		if !m.domains[name] {
			return nil
		}
		m.delete(name)
		return team.DeleteDomain(ctx, name)
	case "exclude", "include", "remove":
		return m.decide(ctx, team, move)
	case "all":
		for _, v := range m.versions {
			if v.state == dmarcd.ReportCounted {
				v.state = dmarcd.ReportExcluded
			}
		}
		_, err := team.SetReportsCounted(ctx, store.ReportFilter{}, false, decided("report.exclude"))
		return err
	case "purge":
		_, err := in.store.Purge(ctx)
		return err
	case "rollups":
		_, err := in.store.BuildRollups(ctx)
		return err
	case "freeze":
		for more := true; more; {
			var err error
			if more, err = in.store.Freeze(ctx, freezeAll); err != nil {
				return err
			}
		}
		return nil
	case "wait":
		in.clock.advance(ofDays(move.days))
		return nil
	default:
		m.expire(now - storedDays)
		retained := store.Retention{Records: ofDays(storedDays), Counters: ofDays(storedDays)}
		for more := true; more; {
			var err error
			if more, err = in.store.Expire(ctx, retained); err != nil {
				return err
			}
		}
		return nil
	}
}

// decide includes, excludes or deletes one of the reports.
func (m *model) decide(ctx context.Context, team *store.Team, move move) error {
	if len(m.versions) == 0 {
		return nil
	}
	at := move.which % len(m.versions)
	v := m.versions[at]
	if move.what == "remove" {
		m.versions = slices.Delete(m.versions, at, at+1)
		return team.DeleteReport(ctx, v.id, decided("report.delete"))
	}
	m.setCounted(v, move.what == "include")
	_, err := team.SetReportCounted(ctx, v.id, move.what == "include", decided("report."+move.what))
	return err
}

// TestModel compares the store with the model after random moves.
func TestModel(t *testing.T) {
	t.Parallel()
	in := newInbox(t, storetest.SQLite(t))
	games := 15 // enough for every commit; `make soak` plays them all
	if testing.Short() {
		games = 5
	}
	played := 0
	rapid.Check(t, func(rt *rapid.T) {
		if played++; played > games && !t.Failed() && os.Getenv("DMARCD_SOAK") == "" {
			return
		}
		if err := in.play(t.Context(), moves().Draw(rt, "moves")); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestModelOnPostgres plays fewer games, the same ones each time.
func TestModelOnPostgres(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	in := newInbox(t, storetest.Postgres(t))
	for seed := range 20 {
		if err := in.play(t.Context(), moves().Example(seed)); err != nil {
			t.Errorf("game %d: %v", seed, err)
		}
	}
}

// TestModelCanFail checks the model itself: it counts, and each move changes it.
func TestModelCanFail(t *testing.T) {
	t.Parallel()
	m := &model{domains: map[string]bool{"example.com": true}}
	m.receive(storetest.Delivery(report("1", "example.com", storetest.Passed("a.example.com", 5), storetest.Passed("example.org", 1))))
	m.add([]string{"example.org"})
	want := []string{"", "2026-11-15", "example.com", "example.com 2026-11-15"}
	if got := slices.Sorted(maps.Keys(m.counted())); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m.delete("example.com")
	if got := m.counted(); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}
