package service_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// spfWorld has a managed SPF record, and what its include has.
type spfWorld struct {
	*world
	included string
}

// dns sets the DNS of now.
func (w *spfWorld) dns(o *service.Options) { o.DNS = dnstest.New(w.included) }

// service returns the service with the DNS of now.
func (w *spfWorld) service() *service.Service {
	options := w.options
	w.dns(&options)
	return service.New(w.store, options)
}

func (w *spfWorld) publish(base int64, text string) (service.ManagedRecord, error) {
	w.Helper()
	return w.with(service.CommandLine(), w.dns).PublishRecord(ctx, ours, base, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: text})
}

// refresh resolves the record again, and returns what the page shows.
func (w *spfWorld) refresh() service.ManagedRecord {
	w.Helper()
	musttest.Do(w, w.service().RefreshSPF(ctx, store.DueSPF{Team: w.team.ID, Name: ours}))
	records := musttest.Get(w.with(service.CommandLine(), w.dns).ManagedRecords(ctx, ours))(w)
	if len(records) != 1 {
		w.Fatalf("got %+v, want one record", records)
	}
	return records[0]
}

// outdated returns the events about the record.
func (w *spfWorld) outdated() (reasons []string) {
	w.Helper()
	for _, e := range musttest.Get(w.store.Team(w.team.ID).Events(ctx, store.EventFilter{}, store.Cursor{}, 100))(w) {
		if e.Kind == dmarcd.SPFOutdated {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// TestManagedSPF publishes an SPF record, and refreshes it while the DNS of its include changes.
func TestManagedSPF(t *testing.T) {
	t.Parallel()
	w := &spfWorld{world: newWorld(t, storetest.SQLite(t)), included: "spf.example TXT \"v=spf1 ip4:192.0.2.0/28 -all\"\nexample.com A 198.51.100.1"}
	w.managed(0)
	for text, want := range map[string]string{
		"v=spf2 a":                                "does not begin with v=spf1",
		"v=spf1 include:missing.example -all":     "missing.example does not exist",
		"v=spf1 ~include:spf.example":             "an include can only match or not",
		"v=spf1 redirect=abc.dns.example.net":     "leads to this installation",
		"v=spf1 include:spf.example +all":         "authorizes everyone",
		"v=spf1 exists:%{p}.x.example -all":       "would mean something else",
		"v=spf1 a:one.example mx:slow.example ~a": "",
	} {
		if _, err := w.publish(0, text); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	command := w.with(service.CommandLine(), w.dns)
	review := musttest.Get(command.ReviewRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: "v=spf1 a include:spf.example exists:%{i}.x.example ~all"}))(t)
	if got := strings.Join(review.Served, "\n"); got != "v=spf1 ip4:192.0.2.0/28 ip4:198.51.100.1 exists:%{i}.x.example ~all" ||
		review.Effect != "Receivers get 1 record with 17 IPv4 addresses and 0 IPv6 networks of /64, and make 2 of 10 lookups. Not flattened: exists:%{i}.x.example." {
		t.Errorf("got %q, %q, want what receivers would get", got, review.Effect)
	}
	first := musttest.Get(w.publish(0, "v=spf1 a include:spf.example ~all"))(t)
	if first.Owner != ours || first.Content != "v=spf1 a:example.com include:spf.example ~all" || first.State != dmarcd.RecordNotYet {
		t.Errorf("got %+v, want the record with its domain, not yet published", first)
	}
	served := func(r service.ManagedRecord, want, note string) {
		t.Helper()
		if got := strings.Join(r.Served, "\n"); got != want || !strings.HasPrefix(r.Note, note) || note == "" && r.Note != "" {
			t.Errorf("got %q with the note %q, want %q, %q", got, r.Note, want, note)
		}
	}
	const before = "v=spf1 ip4:192.0.2.0/28 ip4:198.51.100.1 ~all"
	served(first, before, "")
	w.included += "\nexample.com TXT \"v=spf1 redirect=" + first.Target + `"`
	if r := w.refresh(); r.State != dmarcd.RecordManaged {
		t.Errorf("got %s, want managed", r.State)
	}
	use := func(spf string) { w.included = "spf.example " + spf + "\nexample.com A 198.51.100.1" }
	use("INCONCLUSIVE")
	served(w.refresh(), before, "A lookup failed: the lookup of spf.example failed")
	served(w.refresh(), before, "A lookup failed: ")
	use(`TXT "no record"`)
	served(w.refresh(), before, "The record can no longer be resolved: spf.example has no SPF record.")
	use(`TXT "v=spf1 ip4:192.0.2.0/28 ip4:192.0.2.17 -all"`)
	const after = "v=spf1 ip4:192.0.2.0/28 ip4:192.0.2.17 ip4:198.51.100.1 ~all"
	served(w.refresh(), after, "")
	use(`TXT "v=spf1 ip4:192.0.2.0/24 -all"`)
	const grown = "A change waits for a person: from 18 to 257 IPv4 addresses. Publish the record again to approve it."
	served(w.refresh(), after, grown)
	if got, want := fmt.Sprint(w.outdated()), "[A lookup failed: the lookup of spf.example failed: the zone says that spf.example cannot be looked up. "+
		"The record can no longer be resolved: spf.example has no SPF record. "+grown+"]"; len(w.outdated()) != 3 {
		t.Errorf("got the events %s, want %s", got, want)
	}
	w.growthNeedsAPerson(first.Content)
	served(musttest.Get(w.publish(1, first.Content))(t), "v=spf1 ip4:192.0.2.0/24 ip4:198.51.100.1 ~all", "")
	served(w.refresh(), "v=spf1 ip4:192.0.2.0/24 ip4:198.51.100.1 ~all", "")

	// A name that is no longer in use is refreshed without the domain.
	musttest.Do(t, w.with(service.CommandLine(), w.dns).StopRecord(ctx, ours, dmarcd.RecordSPF))
	use(`TXT "v=spf1 ip4:192.0.2.0/25 -all"`)
	refreshRetired := func(want string) {
		t.Helper()
		musttest.Get(w.service().RefreshRetiredSPF(ctx))(t)
		names := musttest.Get(w.store.ZoneNames(ctx, "", 10))(t)
		if len(names) != 1 || names[0].Records[0].Data != want {
			t.Errorf("got %+v, want %s", names, want)
		}
	}
	refreshRetired("v=spf1 ip4:192.0.2.0/25 ip4:198.51.100.1 ~all")
	use(`TXT "v=spf1 ip4:192.0.0.0/16 -all"`)
	refreshRetired("v=spf1 ip4:192.0.2.0/25 ip4:198.51.100.1 ~all")
}

// growthNeedsAPerson has a token publish version 1 again after its addresses have grown.
func (w *spfWorld) growthNeedsAPerson(content string) {
	w.Helper()
	v := dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: content}
	token := musttest.Get(w.store.Team(w.team.ID).CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopePublish, Hash: [32]byte{7}, CreatedBy: w.owner.ID}))(w)
	program, command := w.with(service.Token(token.ID, dmarcd.ScopePublish, ""), w.dns), w.with(service.CommandLine(), w.dns)
	var invalid *dmarcd.InvalidError
	if _, err := program.PublishRecord(ctx, ours, 1, v); !errors.As(err, &invalid) || invalid.Field != "record" || !strings.Contains(invalid.Message, "from 18 to 257 IPv4 addresses") {
		w.Errorf("a token: got %v, want that a user has to publish it", err)
	}
	user := w.user(31, dmarcd.Invitation{Email: "editor@example.com", Team: w.team.ID, Role: dmarcd.RoleEditor})
	approve := func() error {
		editor := w.with(w.as(user), w.dns)
		proposals := musttest.Get(editor.RecordProposals(ctx, ours))(w)
		if len(proposals) != 1 || !strings.Contains(proposals[0].Effect, "It grows: from 18 to 257 IPv4 addresses.") {
			w.Fatalf("got %+v, want a proposal that says how it grows", proposals)
		}
		_, err := editor.ApproveRecord(ctx, ours, dmarcd.RecordSPF, proposals[0].Hash())
		return err
	}
	musttest.Do(w, command.RequireApproval(ctx, true))
	if r := musttest.Get(program.PublishRecord(ctx, ours, 1, v))(w); r.State != dmarcd.RecordProposed {
		w.Errorf("a token where approval is required: got %+v, want a proposal", r)
	}
	before := w.included
	w.included = strings.ReplaceAll(before, "/24", "/22")
	if err := approve(); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), "has grown since it was proposed") {
		w.Errorf("more growth than was proposed: got %v, want an error", err)
	}
	w.included = before
	musttest.Do(w, command.WithdrawProposal(ctx, ours, dmarcd.RecordSPF))
	musttest.Do(w, command.RequireApproval(ctx, false))
}

// TestIncludedSPF counts the lookups of the domain's own record.
func TestIncludedSPF(t *testing.T) {
	t.Parallel()
	w := &spfWorld{world: newWorld(t, storetest.SQLite(t))}
	w.managed(0)
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, " ip4:10.0.%d.0/25", i)
	}
	w.included = `spf.example TXT "v=spf1` + long.String() + `"`
	first := musttest.Get(w.publish(0, "v=spf1 include:spf.example"))(t)
	if len(first.Served) < 4 {
		t.Fatalf("got %q, want several records", first.Served)
	}
	own := "v=spf1 include:" + first.Target
	for i := range 8 {
		own += fmt.Sprintf(" exists:%%{i}.h%d.example", i)
	}
	w.included += "\nexample.com TXT \"" + own + ` -all"`
	if r := w.refresh(); !strings.Contains(r.Note, "lookups are needed, and receivers stop after 10") || r.State != dmarcd.RecordManaged || len(r.Served) != len(first.Served) {
		t.Errorf("got %+v, want that there are too many lookups", r)
	}
}
