package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

var policy = dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none"}

// managed opens a zone and publishes some versions of the DMARC record.
func (w *world) managed(versions int64) {
	w.Helper()
	musttest.Get(w.store.OpenZone(ctx, "dns.example.net", ""))(w)
	for base := range versions {
		musttest.Get(w.store.Team(w.team.ID).PublishRecord(ctx, ours, base, policy, nil))(w)
	}
}

// recordUses are the use cases of managed records. What an actor publishes for real is another kind
// than what is prepared, so that it works again for the next one.
var recordUses = map[string]use{
	"ZoneState": {
		needs: operate, wants: dmarcd.ErrNotFound,
		prepare: func(w *world) { musttest.Get(w.store.OpenZone(ctx, "dns.example.net", ""))(w) },
		system:  func(_ *world, s *service.System) error { return finds(s.ZoneState(ctx)) },
		fails:   func(_ *world, _ *service.Team, s *service.System) error { return errorOf(s.ZoneState(ctx)) },
	},
	"DropOrphans": {
		needs: operate, action: "zone.drop",
		prepare: func(w *world) { musttest.Get(w.store.OpenZone(ctx, "dns.example.net", ""))(w) },
		system:  func(_ *world, s *service.System) error { return errorOf(s.DropOrphans(ctx)) },
	},
	"ManagedRecords": {
		needs: see, prepare: func(w *world) { w.managedOnce() },
		team: func(_ *world, t *service.Team) error { return finds(t.ManagedRecords(ctx, ours)) },
	},
	"RecordVersions": {
		needs: see, prepare: func(w *world) { w.managedOnce() },
		team: func(_ *world, t *service.Team) error { return finds(t.RecordVersions(ctx, ours)) },
	},
	"PublishRecord": {
		needs: publish, action: "record.publish", target: ours, wants: dmarcd.ErrInvalid,
		prepare: func(w *world) { w.managedOnce() },
		team:    func(_ *world, t *service.Team) error { return errorOf(t.PublishRecord(ctx, ours, 2, policy)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.PublishRecord(ctx, ours, 0, policy)) // there is no zone
		},
	},
	"UndoRecord": {
		needs: publish, action: "record.publish", target: ours, wants: dmarcd.ErrConflict,
		prepare: func(w *world) { w.managedOnce() },
		team:    func(_ *world, t *service.Team) error { return errorOf(t.UndoRecord(ctx, ours, dmarcd.RecordDMARC, 2)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.UndoRecord(ctx, ours, dmarcd.RecordDMARC, 1))
		},
	},
	"ReviewRecord": {
		needs: publish, prepare: func(w *world) { w.managedOnce() },
		team: func(_ *world, t *service.Team) error { return errorOf(t.ReviewRecord(ctx, ours, 2, policy)) },
	},
	"RequireApproval": {
		needs: manage, action: "team.approval",
		team: func(_ *world, t *service.Team) error { return t.RequireApproval(ctx, false) },
	},
	"RecordProposals": {
		needs: see, prepare: func(w *world) { w.proposed() },
		team: func(_ *world, t *service.Team) error { return finds(t.RecordProposals(ctx, ours)) },
	},
	"ApproveRecord": {
		needs: approve, action: "record.approve", target: ours, wants: dmarcd.ErrConflict,
		prepare: func(w *world) { w.proposed() },
		team: func(w *world, t *service.Team) error {
			proposals, err := w.store.Team(w.team.ID).RecordProposals(ctx, ours)
			if err != nil || len(proposals) == 0 { // of a domain that another use case deleted
				return errorOf(t.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, ""))
			}
			return errorOf(t.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, proposals[0].Hash()))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, "another hash"))
		},
	},
	"WithdrawProposal": {
		needs: publish, action: "record.withdraw", target: ours, wants: dmarcd.ErrNotFound,
		prepare: func(w *world) { w.proposed() },
		team:    func(_ *world, t *service.Team) error { return t.WithdrawProposal(ctx, ours, dmarcd.RecordDMARC) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.WithdrawProposal(ctx, ours, dmarcd.RecordDMARC)
		},
	},
	"StopRecord": {
		needs: publish, action: "record.stop", target: ours, wants: dmarcd.ErrNotFound,
		prepare: func(w *world) { w.managedOnce() },
		team:    func(_ *world, t *service.Team) error { return t.StopRecord(ctx, ours, dmarcd.RecordDMARC) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.StopRecord(ctx, ours, dmarcd.RecordDMARC)
		},
	},
}

// proposed has the command line propose the next version.
func (w *world) proposed() {
	w.Helper()
	w.managedOnce()
	t := w.store.Team(w.team.ID)
	versions, err := t.RecordVersions(ctx, ours)
	if err == nil && len(versions) > 0 {
		_, _ = t.ProposeRecord(ctx, ours, versions[0].Version, dmarcd.RecordProposal{RecordVersion: policy}, 0)
	}
}

// managedOnce makes two versions, unless there are some.
func (w *world) managedOnce() {
	w.Helper()
	if versions, err := w.store.Team(w.team.ID).RecordVersions(ctx, ours); err == nil && len(versions) == 0 {
		w.managed(2)
	}
}

// TestManagedRecord publishes, undoes and stops a record, and follows its CNAME record.
func TestManagedRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	with := func(zone string) *service.Team {
		return w.with(service.CommandLine(), func(o *service.Options) { o.DNS = dnstest.New(zone) })
	}
	published := with(`_dmarc.example.com. TXT "v=DMARC1; p=quarantine"`)
	if _, err := published.PublishRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC}); !errors.Is(err, dmarcd.ErrInvalid) || !strings.Contains(err.Error(), "DMARCD_ZONE") {
		t.Errorf("without a zone: got %v, want an error that names the setting", err)
	}
	w.managed(0)
	first := musttest.Get(published.PublishRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC}))(t)
	if first.Content != "v=DMARC1; p=quarantine" || first.State != dmarcd.RecordElsewhere || first.Owner != "_dmarc.example.com" || first.Target != first.Label+".dns.example.net" || first.Author != "command line" {
		t.Errorf("got %+v, want the record that is published, elsewhere", first)
	}
	for zone, want := range map[string]dmarcd.RecordState{
		"": dmarcd.RecordNotYet,
		"_dmarc.example.com. CNAME " + first.Target + ".":                                               dmarcd.RecordManaged,
		"_dmarc.example.com. CNAME " + strings.ToUpper(first.Target) + ".":                              dmarcd.RecordManaged,
		"_dmarc.example.com. CNAME other.dns.example.net.":                                              dmarcd.RecordElsewhere,
		`_dmarc.example.com. TXT "something"`:                                                           dmarcd.RecordElsewhere,
		"_dmarc.example.com. CNAME " + first.Target + ".\n" + first.Target + `. TXT "v=DMARC1; p=none"`: dmarcd.RecordManaged,
	} {
		records := musttest.Get(with(zone).ManagedRecords(ctx, ours))(t)
		if len(records) != 1 || records[0].State != want {
			t.Errorf("%q: got %+v, want %s", zone, records, want)
		}
	}
	second := musttest.Get(published.PublishRecord(ctx, ours, 1, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: " v=DMARC1; p=reject ", Reason: "ready"}))(t)
	if second.Version != 2 || second.Target != first.Target || second.Content != "v=DMARC1; p=reject" || second.Reason != "ready" {
		t.Errorf("got %+v, want version 2 with the same name", second)
	}
	if _, err := published.PublishRecord(ctx, ours, 1, policy); !errors.Is(err, dmarcd.ErrConflict) {
		t.Errorf("based on an old version: got %v, want ErrConflict", err)
	}
	undone := musttest.Get(published.UndoRecord(ctx, ours, dmarcd.RecordDMARC, 2))(t)
	if undone.Version != 3 || undone.Content != first.Content || undone.Reason != "undo of version 2" {
		t.Errorf("got %+v, want version 3 with the content of the first", undone)
	}
	musttest.Do(t, published.StopRecord(ctx, ours, dmarcd.RecordDMARC))
	if records := musttest.Get(published.ManagedRecords(ctx, ours))(t); len(records) != 0 {
		t.Errorf("after the stop: got %+v, want none", records)
	}
}

// TestUnpublishableRecords tries what receivers would not use.
func TestUnpublishableRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t))
	w.managed(0)
	team := w.with(service.CommandLine(), func(o *service.Options) {
		o.DNS = dnstest.New(`_dmarc.example.com TXT "v=DMARC1; p=none; rua=mailto:a@other.example"`)
		o.Checker = dnscheck.New(dnscheck.Options{Interval: time.Hour, Now: time.Now, Resolver: dnstest.New("example.com MX 0 mx.example.com\nmx.example.com A 192.0.2.1\nother.example A 192.0.2.1")})
	})
	for _, test := range []struct {
		name    string
		version dmarcd.RecordVersion
		field   string
	}{
		{"no record", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "hello"}, "record"},
		{"another kind", dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Content: "v=DMARC1; p=none"}, "record"},
		{"without a policy", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; rua=mailto:a@example.com"}, "record"},
		{"an unknown policy", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=refuse"}, "record"},
		{"two policies", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; p=reject"}, "record"},
		{"a bad address", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=dmarc@example.com"}, "record"},
		{"reports to another domain that does not agree", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=mailto:a@other.example"}, "record"},
		{"reports to a host without mail", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=mailto:a@none.example.com"}, "record"},
		{"a line break", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none;\n rua=mailto:a@example.com"}, "record"},
		{"not ASCII", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=mailto:ä@example.com"}, "record"},
		{"too long", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none; rua=mailto:" + strings.Repeat("a", 1000) + "@example.com"}, "record"},
		{"TLS without a destination", dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Content: "v=TLSRPTv1;"}, "record"},
		{"TLS with a bad destination", dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT, Content: "v=TLSRPTv1; rua=tls@example.com"}, "record"},
		{"nothing to begin with", dmarcd.RecordVersion{Kind: dmarcd.RecordTLSRPT}, "record"},
		{"a long reason", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none", Reason: strings.Repeat("x", 501)}, "reason"},
		{"a reason of two lines", dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=none", Reason: "a\nb"}, "reason"},
	} {
		_, err := team.PublishRecord(ctx, ours, 0, test.version)
		var invalid *dmarcd.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != test.field {
			t.Errorf("%s: got %v, want an error of the field %s", test.name, err, test.field)
		}
	}
	if names := musttest.Get(w.store.ZoneNames(ctx, "", 10))(t); len(names) != 0 {
		t.Errorf("got the names %+v, want none", names)
	}
	// What the domain has already is taken over as it is.
	review := musttest.Get(team.ReviewRecord(ctx, ours, 0, dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC}))(t)
	if len(review.Warnings) == 0 || !strings.Contains(strings.Join(review.Warnings, " "), "other.example has not authorized reports") {
		t.Errorf("got the warnings %q, want that reports are not authorized", review.Warnings)
	}
	for _, good := range []dmarcd.RecordVersion{
		{Kind: dmarcd.RecordDMARC, Content: "v=DMARC1; p=reject; sp=none; pct=50; rua=mailto:a@example.com!10m,mailto:b@example.com; fo=1"},
		{Kind: dmarcd.RecordTLSRPT, Content: "v=TLSRPTv1; rua=mailto:a@example.com,https://tls.example.com/r"},
	} {
		musttest.Get(team.PublishRecord(ctx, ours, 0, good))(t)
	}
}

// TestApproval has another user approve exactly what was proposed.
func TestApproval(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		w := newWorld(t, db)
		w.managed(1)
		editor := w.user(21, dmarcd.Invitation{Email: "editor@example.com", Team: w.team.ID, Role: dmarcd.RoleEditor})
		owner, other := w.service.Team(w.team.ID, w.as(w.owner)), w.service.Team(w.team.ID, w.as(editor))
		w.must(owner.RequireApproval(ctx, true))
		token := musttest.Get(w.store.Team(w.team.ID).CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopePublish, Hash: [32]byte{9}, CreatedBy: w.owner.ID}))(t)
		program := w.service.Team(w.team.ID, service.Token(token.ID, dmarcd.ScopePublish, ""))
		hash := func(want string) string {
			t.Helper()
			proposals := musttest.Get(other.RecordProposals(ctx, ours))(t)
			if len(proposals) != 1 || proposals[0].Content != want {
				t.Fatalf("got %+v, want %s proposed", proposals, want)
			}
			return proposals[0].Hash()
		}
		const quarantine, reject = "v=DMARC1; p=quarantine", "v=DMARC1; p=reject"
		change := func(content string) dmarcd.RecordVersion {
			return dmarcd.RecordVersion{Kind: dmarcd.RecordDMARC, Content: content}
		}
		if record := musttest.Get(owner.PublishRecord(ctx, ours, 1, change(quarantine)))(t); record.State != dmarcd.RecordProposed {
			t.Errorf("got %+v, want a proposal", record)
		}
		if _, err := owner.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, hash(quarantine)); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("by who proposed it: got %v, want ErrInvalid", err)
		}
		read := hash(quarantine)
		musttest.Get(program.PublishRecord(ctx, ours, 1, change(reject)))(t)
		if _, err := other.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, read); !errors.Is(err, dmarcd.ErrConflict) {
			t.Errorf("another text than was read: got %v, want ErrConflict", err)
		}
		if _, err := owner.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, hash(reject)); !errors.Is(err, dmarcd.ErrInvalid) {
			t.Errorf("by who created the token: got %v, want ErrInvalid", err)
		}
		for _, team := range []*service.Team{program, w.service.Team(w.team.ID, service.CommandLine())} {
			if _, err := team.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, hash(reject)); !errors.Is(err, dmarcd.ErrForbidden) {
				t.Errorf("by no user: got %v, want ErrForbidden", err)
			}
		}
		if versions := musttest.Get(owner.RecordVersions(ctx, ours))(t); len(versions) != 1 {
			t.Errorf("got %+v, want nothing published", versions)
		}
		record := musttest.Get(other.ApproveRecord(ctx, ours, dmarcd.RecordDMARC, hash(reject)))(t)
		if record.Version != 2 || record.Content != reject || record.Approver != "editor@example.com" || record.Author != "token "+token.ID.String() {
			t.Errorf("got %+v, want version 2 of the token, approved by the editor", record)
		}
		if versions := musttest.Get(owner.RecordVersions(ctx, ours))(t); versions[0].Difference != "- p=none\n+ p=reject" {
			t.Errorf("got the difference %q", versions[0].Difference)
		}
		if record := musttest.Get(other.UndoRecord(ctx, ours, dmarcd.RecordDMARC, 2))(t); record.State != dmarcd.RecordProposed {
			t.Errorf("an undo: got %+v, want a proposal", record)
		}
		w.must(owner.RequireApproval(ctx, false))
		if record := musttest.Get(other.PublishRecord(ctx, ours, 2, change(quarantine)))(t); record.Version != 3 {
			t.Errorf("without approval: got %+v, want version 3", record)
		}
		if proposals := musttest.Get(other.RecordProposals(ctx, ours))(t); len(proposals) != 0 {
			t.Errorf("got %+v, want nothing proposed for an old base", proposals)
		}
	})
}
