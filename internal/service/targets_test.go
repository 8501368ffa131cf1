package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	elsewhere "github.com/dmarcd/dmarcd/internal/publish"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// nameServer is the DNS server of a customer: the text at each name. fails returns an error for a
// change, and whether it is made nevertheless.
type nameServer struct {
	mu    sync.Mutex
	texts map[string]string
	fails func(c elsewhere.Change) (made bool, err error)
	tries error
	away  error
}

func (n *nameServer) Try(context.Context, elsewhere.Target, string) error { return n.tries }

func (n *nameServer) Publish(_ context.Context, t elsewhere.Target, c elsewhere.Change) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t.Key != "key:secret" || !c.Ours(c.Text) {
		return errors.New("another key, or another kind")
	}
	if had := n.texts[c.Name]; c.Base != "" && had != c.Base && had != c.Text {
		return &elsewhere.Error{Stage: elsewhere.StageOther, Message: "The server has another record."}
	}
	made, err := true, error(nil)
	if n.fails != nil {
		made, err = n.fails(c)
	}
	if made {
		if n.texts == nil {
			n.texts = make(map[string]string)
		}
		n.texts[c.Name] = c.Text
	}
	return err
}

func (n *nameServer) Published(_ context.Context, _ elsewhere.Target, c elsewhere.Change) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.texts[c.Name] == c.Text, n.away
}

var sampleTarget = dmarcd.PublishTarget{Kind: dmarcd.TargetRFC2136, Server: "ns1.example.com"}

// target adds the target of the domain, unless there is one.
func (w *world) target() {
	w.Helper()
	if _, err := w.store.Team(w.team.ID).RecordVersions(ctx, ours); err != nil {
		return // the domain was deleted
	}
	seal := func(dmarcd.PublishTarget) ([]byte, error) { return []byte("key:secret"), nil }
	target := musttest.Get(dmarcd.TargetFor(ours, sampleTarget))(w)
	musttest.Get(w.store.Team(w.team.ID).SetRecordTarget(ctx, ours, target, seal))(w)
}

// targetUses are the use cases of targets.
var targetUses = map[string]use{
	"RecordTarget": {
		needs: see, prepare: func(w *world) { w.target() },
		team: func(_ *world, t *service.Team) error { return finds(t.RecordTarget(ctx, ours)) },
	},
	"SetRecordTarget": {
		needs: publish, action: "target.set", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return errorOf(t.SetRecordTarget(ctx, ours, sampleTarget, "key:secret"))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.SetRecordTarget(ctx, ours, sampleTarget, ""))
		},
	},
	"RemoveRecordTarget": {
		needs: publish, action: "target.remove", target: ours, wants: dmarcd.ErrNotFound,
		prepare: func(w *world) { w.target() },
		team:    func(_ *world, t *service.Team) error { return t.RemoveRecordTarget(ctx, ours) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.RemoveRecordTarget(ctx, ours)
		},
	},
}

func TestRecordTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	team := w.service.Team(w.team.ID, w.asOwner())
	if _, err := team.RecordTarget(ctx, ours); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("without one: got %v", err)
	}
	for field, target := range map[string]dmarcd.PublishTarget{
		"kind":   {Kind: "other", Server: "a"},
		"server": {Kind: dmarcd.TargetRFC2136, Server: "a b"},
		"zone":   {Kind: dmarcd.TargetRFC2136, Server: "a", Zone: "other.example"},
	} {
		var invalid *dmarcd.InvalidError
		if _, err := team.SetRecordTarget(ctx, ours, target, "key:secret"); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	w.nameServer.tries = &elsewhere.Error{Stage: elsewhere.StageKey, Message: "Another key.", Reason: errors.New("BADSIG from 192.0.2.1")}
	var invalid *dmarcd.InvalidError
	if _, err := team.SetRecordTarget(ctx, ours, sampleTarget, "key:secret"); !errors.As(err, &invalid) || invalid.Field != "key" || invalid.Message != "Another key." {
		t.Errorf("another key: got %v", err)
	}
	if e := w.entries()[0]; e.Action != "target.failed" || strings.Contains(e.Detail, "secret") || strings.Contains(e.Detail, "192.0.2.1") {
		t.Errorf("got the entry %+v", e)
	}
	for range 10 {
		_, err := team.SetRecordTarget(ctx, ours, sampleTarget, "key:secret")
		_ = errors.As(err, &invalid)
	}
	if !strings.Contains(invalid.Message, "Try again in") {
		t.Errorf("got %q, want attempts throttled", invalid.Message)
	}
	w.nameServer.tries = nil
	got := musttest.Get(w.service.Team(w.team.ID, service.CommandLine()).SetRecordTarget(ctx, ours, sampleTarget, " key:secret"))(t)
	if got.Server != "ns1.example.com:53" || got.Zone != ours {
		t.Errorf("got %+v", got)
	}
	shown := musttest.Get(team.RecordTarget(ctx, ours))(t)
	if len(shown.Secret) != 0 || shown.Server != got.Server {
		t.Errorf("got %+v, want no secret", shown)
	}
}

// TestPublishElsewhere publishes at a target: no zone is needed, and a failure leaves the version
// unpublished.
func TestPublishElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.target()
	team := w.service.Team(w.team.ID, w.asOwner())
	first := musttest.Get(team.PublishRecord(ctx, ours, 0, policy))(t)
	if first.Version != 1 || first.Target != "" || first.State != dmarcd.RecordManaged || w.nameServer.texts["_dmarc."+ours] != policy.Content {
		t.Errorf("got %+v and %v", first, w.nameServer.texts)
	}
	reject := dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}
	if _, err := team.PublishRecord(ctx, ours, 0, reject); !errors.Is(err, dmarcd.ErrConflict) {
		t.Errorf("another base: got %v", err)
	}
	w.nameServer.fails = func(elsewhere.Change) (bool, error) {
		return false, &elsewhere.Error{Stage: elsewhere.StagePolicy, Message: "Not allowed.", Reason: errors.New("REFUSED")}
	}
	var invalid *dmarcd.InvalidError
	if _, err := team.PublishRecord(ctx, ours, 1, reject); !errors.As(err, &invalid) || invalid.Message != "Not allowed." {
		t.Errorf("a failure: got %v", err)
	}
	w.nameServer.fails = nil
	if versions := musttest.Get(team.RecordVersions(ctx, ours))(t); len(versions) != 1 {
		t.Errorf("got %+v, want the failed version not published", versions)
	}
	musttest.Get(team.PublishRecord(ctx, ours, 1, reject))(t)
	musttest.Get(team.UndoRecord(ctx, ours, dmarcd.RecordDMARC, 2))(t)
	w.nameServer.texts["_dmarc."+ours] = "v=DMARC1; p=quarantine"
	if _, err := team.PublishRecord(ctx, ours, 3, reject); !errors.Is(err, dmarcd.ErrInvalid) {
		t.Errorf("changed by hand: got %v", err)
	}
	options := w.options
	for text, want := range map[string]dmarcd.RecordState{
		"_dmarc." + ours + ` TXT "v=DMARC1; p=none"`:   dmarcd.RecordManaged,
		"_dmarc." + ours + ` TXT "v=DMARC1; p=reject"`: dmarcd.RecordElsewhere,
		"_dmarc." + ours + ` TXT "other"`:              dmarcd.RecordNotYet,
	} {
		options.DNS = dnstest.New(text)
		records := musttest.Get(service.New(w.store, options).Team(w.team.ID, w.asOwner()).ManagedRecords(ctx, ours))(t)
		if len(records) != 1 || records[0].State != want || records[0].Target != "" {
			t.Errorf("%s: got %+v", text, records)
		}
	}
	musttest.Do(t, team.RemoveRecordTarget(ctx, ours))
	if _, err := team.PublishRecord(ctx, ours, 3, reject); !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "was removed") {
		t.Errorf("without the target: got %v", err)
	}
	musttest.Do(t, team.StopRecord(ctx, ours, dmarcd.RecordDMARC))
}

// TestPublishOtherKindsElsewhere publishes an SPF record as it is written, and an MTA-STS policy by names in
// the zone.
func TestPublishOtherKindsElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.target()
	team := w.service.Team(w.team.ID, w.asOwner())
	publishSPF := func(base int64, text string) (service.ManagedRecord, error) {
		return team.PublishRecord(ctx, ours, base, dmarcd.RecordVersion{Kind: dmarcd.RecordSPF, Content: text})
	}
	var invalid *dmarcd.InvalidError
	if _, err := publishSPF(0, "v=spf1"+strings.Repeat(" exists:%{i}.example.com", 11)+" -all"); !errors.As(err, &invalid) || invalid.Field != "record" || !strings.Contains(invalid.Message, "11 DNS lookups") {
		t.Errorf("eleven lookups: got %v", err)
	}
	const part = "v=spf1 exists:%{i}.example.com ip4:192.0.2.0/24 -all"
	if got, err := publishSPF(0, part); err != nil || got.Target != "" || got.Content != part || w.nameServer.texts[ours] != part {
		t.Errorf("got %+v, %v and %q", got, err, w.nameServer.texts)
	}
	options := w.options
	options.DNS = dnstest.New(ours + ` TXT "other"` + "\n" + ours + ` TXT "` + part + `"`)
	records := musttest.Get(service.New(w.store, options).Team(w.team.ID, w.asOwner()).ManagedRecords(ctx, ours))(t)
	if len(records) != 1 || records[0].State != dmarcd.RecordManaged || len(records[0].Served) != 0 {
		t.Errorf("got %+v", records)
	}
	if _, err := publishSPF(1, "v=spf1 ip4:192.0.2.0/24 ~all"); err != nil {
		t.Error(err)
	}
	if err := w.service.CheckDue(ctx, dmarcd.DueDomain{Team: w.team.ID, Name: ours, Full: true}); err != nil {
		t.Errorf("a check: got %v", err)
	}
	mtaSTS := dmarcd.RecordVersion{Kind: dmarcd.RecordMTASTS, Content: "version: STSv1\nmode: testing\nmx: mx.example.com\nmax_age: 86400"}
	if _, err := team.PublishRecord(ctx, ours, 0, mtaSTS); !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "DMARCD_ZONE") {
		t.Errorf("without a zone: got %v", err)
	}
	musttest.Do(t, team.StopRecord(ctx, ours, dmarcd.RecordSPF))
}

// TestInterruptedPublication ends the process after the version is stored as begun: before and after
// the server has it.
func TestInterruptedPublication(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite(t))
			w.target()
			now := time.Now()
			options := w.options
			options.Now = func() time.Time { return now }
			use := service.New(w.store, options)
			team := use.Team(w.team.ID, w.asOwner())
			w.nameServer.fails = func(elsewhere.Change) (bool, error) {
				return made, &elsewhere.Error{Stage: elsewhere.StageConnection, Message: "No answer.", Uncertain: true}
			}
			if _, err := team.PublishRecord(ctx, ours, 0, policy); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), "checked again") {
				t.Fatalf("got %v", err)
			}
			w.nameServer.fails = nil
			if _, err := team.PublishRecord(ctx, ours, 0, policy); !errors.Is(err, dmarcd.ErrConflict) {
				t.Errorf("while it may go on: got %v", err)
			}
			now = now.Add(2 * time.Minute)
			w.nameServer.away = &elsewhere.Error{Stage: elsewhere.StageConnection, Message: "Away."}
			if _, err := team.PublishRecord(ctx, ours, 0, policy); !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("while it is away: got %v", err)
			}
			w.nameServer.away = nil
			other := dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject"}
			_, err := team.PublishRecord(ctx, ours, 0, other)
			versions := musttest.Get(team.RecordVersions(ctx, ours))(t)
			if made {
				if !errors.Is(err, dmarcd.ErrConflict) || len(versions) != 1 || versions[0].Content != policy.Content || versions[0].Author != w.owner.Email {
					t.Errorf("got %v and %+v, want the interrupted version finished", err, versions)
				}
				if e := w.entries()[0]; e.Action != "record.publish" || e.Actor != w.owner.Email {
					t.Errorf("got the entry %+v", e)
				}
				return
			}
			if err != nil || len(versions) != 1 || versions[0].Content != other.Content {
				t.Errorf("got %v and %+v, want the next one only", err, versions)
			}
		})
	}
}

// TestFinishRecords has the job finish what was interrupted.
func TestFinishRecords(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	w := newWorld(t, db)
	w.target()
	team := w.store.Team(w.team.ID)
	w.nameServer.texts = map[string]string{"_dmarc." + ours: policy.Content}
	musttest.Get(team.BeginRecord(ctx, ours, 0, policy))(t)
	musttest.Get(team.BeginRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Content: "v=TLSRPTv1; rua=mailto:a@b.example"}))(t)
	if _, err := team.BeginRecord(ctx, ours, 0, policy); !errors.Is(err, dmarcd.ErrConflict) {
		t.Errorf("a second one: got %v", err)
	}
	musttest.Get(w.service.FinishRecords(ctx))(t)
	if versions := musttest.Get(team.RecordVersions(ctx, ours))(t); len(versions) != 0 {
		t.Errorf("it may still go on: got %+v", versions)
	}
	musttest.Get(db.SQL(t).ExecContext(ctx, `UPDATE record_attempts SET created_at = created_at - 120`))(t)
	options := w.options
	options.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	musttest.Get(service.New(w.store, options).FinishRecords(ctx))(t)
	if versions := musttest.Get(team.RecordVersions(ctx, ours))(t); len(versions) != 1 || versions[0].Kind != dmarcd.RecordDMARC {
		t.Errorf("got %+v, want what the server has", versions)
	}
	if _, err := team.BegunRecord(ctx, ours, dmarcd.RecordTLSRPT); !errors.Is(err, dmarcd.ErrNotFound) {
		t.Errorf("got %v, want the other one ended", err)
	}
}
