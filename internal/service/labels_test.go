package service_test

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/service"
)

// labelUses are those of the methods about tags, sample data and searching.
var labelUses = map[string]use{
	"SetSenderClass": {
		needs: change, action: "sender.class", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return t.SetSenderClass(ctx, ours, "AS64496", dmarcd.ClassYours)
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetSenderClass(ctx, ours, "AS64496", dmarcd.ClassService)
		},
	},
	"SetSenderClasses": {
		needs: change, action: "sender.class", target: "all domains", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return t.SetSenderClasses(ctx, "", map[string]dmarcd.Class{"AS64496:others": dmarcd.ClassSpoofing})
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return t.SetSenderClasses(ctx, "", map[string]dmarcd.Class{"AS64496": dmarcd.ClassYours, "no key": dmarcd.ClassYours})
		},
	},
	"ParkedDaily": asks(func(_ *world, t *service.Team) ([]service.DailyCounts, error) {
		return t.ParkedDaily(ctx, dmarcd.Days{}, 10)
	}),
	"TLSDaily": asks(func(_ *world, t *service.Team) ([]service.DailyCounts, error) {
		return t.TLSDaily(ctx, ours, dmarcd.Days{})
	}),
	"Start":     reads(func(_ *world, t *service.Team) (service.Start, error) { return t.Start(ctx) }),
	"HasSample": asks(func(_ *world, t *service.Team) (bool, error) { return t.HasSample(ctx) }),
	"AddSample": {
		needs: change, action: "sample.add", wants: dmarcd.ErrInvalid,
		prepare: func(w *world) { w.deleteDomains() },
		team:    func(_ *world, t *service.Team) error { return t.AddSample(ctx) },
		fails:   func(_ *world, t *service.Team, _ *service.System) error { return t.AddSample(ctx) },
	},
	"DeleteSample": {
		needs: change, action: "sample.delete", wants: dmarcd.ErrNotFound,
		prepare: func(w *world) {
			w.deleteDomains()
			w.must(w.store.Team(w.team.ID).AddSampleDomains(ctx, []string{"one.example"}))
		},
		team:  func(_ *world, t *service.Team) error { return t.DeleteSample(ctx) },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.DeleteSample(ctx) },
	},
	"TeamSenders": asks(func(_ *world, t *service.Team) ([]dmarcd.TeamSender, error) { return t.TeamSenders(ctx) }),
	"SetTeamSender": {
		needs: change, action: "sender.set", target: "crm", wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error {
			return finds(t.SetTeamSender(ctx, dmarcd.TeamSender{Key: "crm", Name: "CRM"}, []string{"192.0.2.1"}))
		},
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.SetTeamSender(ctx, dmarcd.TeamSender{Key: "crm", Name: "CRM", Domains: []string{ours}}, nil))
		},
	},
	"RemoveTeamSender": {
		needs: change, action: "sender.remove", target: "crm", wants: dmarcd.ErrNotFound,
		prepare: func(w *world) {
			w.must(w.store.Team(w.team.ID).SetTeamSender(ctx, dmarcd.TeamSender{Key: "crm", Name: "CRM"}))
		},
		team:  func(_ *world, t *service.Team) error { return t.RemoveTeamSender(ctx, "crm") },
		fails: func(_ *world, t *service.Team, _ *service.System) error { return t.RemoveTeamSender(ctx, "'") },
	},
	"Search": {
		needs: see, wants: dmarcd.ErrInvalid, team: func(_ *world, t *service.Team) error { return finds(t.Search(ctx, "example", 10)) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.Search(ctx, strings.Repeat("x", 201), 10))
		},
	},
	"Tagged": asks(func(_ *world, t *service.Team) ([]dmarcd.Domain, error) { return t.Tagged("eu").Domains(ctx, "", 10) }),
	"Tags":   asks(func(_ *world, t *service.Team) ([]dmarcd.TagCount, error) { return t.Tags(ctx) }),
	"DomainTags": {
		needs: see, wants: dmarcd.ErrNotFound, team: func(_ *world, t *service.Team) error { _, err := t.DomainTags(ctx, ours); return err },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.DomainTags(ctx, "example.net"))
		},
	},
	"SetTags": {
		needs: change, action: "domain.tags", target: ours, wants: dmarcd.ErrInvalid,
		team: func(_ *world, t *service.Team) error { return finds(t.SetTags(ctx, ours, []string{"eu"})) },
		fails: func(_ *world, t *service.Team, _ *service.System) error {
			return errorOf(t.SetTags(ctx, ours, []string{"a b"}))
		},
	},
}

// deleteDomains deletes the domains that the world began with and those that calls before
// this one added.
func (w *world) deleteDomains() {
	w.Helper()
	team := w.store.Team(w.team.ID)
	domains := musttest.Get(team.Domains(ctx, "", 100))(w)
	for _, d := range domains {
		w.must(team.DeleteDomain(ctx, d.Name))
	}
}
