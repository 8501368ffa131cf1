package store_test

import (
	"context"
	"errors"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
)

// labelAttacks are those of the methods about tags and sample data.
var labelAttacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"ReportBytes": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.ReportBytes(ctx, v.report)
		return wantNotFound(err)
	},
	"AddSampleDomains": func(ctx context.Context, other *store.Team, v victim) error {
		if err := other.AddSampleDomains(ctx, []string{v.domain.Name}); err != nil {
			return err
		}
		return other.DeleteSample(ctx)
	},
	"DeleteSample": func(ctx context.Context, other *store.Team, _ victim) error {
		return wantNotFound(other.DeleteSample(ctx))
	},
	"ParkedDaily": func(ctx context.Context, other *store.Team, _ victim) error {
		days, err := other.ParkedDaily(ctx, dmarcd.Days{}, 100)
		return wantNone(len(days), err)
	},
	"TLSDaily": func(ctx context.Context, other *store.Team, v victim) error {
		days, err := other.TLSDaily(ctx, v.domain.Name, dmarcd.Days{})
		return wantNone(len(days), err)
	},
	"HasSample": func(ctx context.Context, other *store.Team, _ victim) error {
		sample, err := other.HasSample(ctx)
		if sample {
			err = errors.Join(err, errors.New("another team's sample data is seen"))
		}
		return err
	},
	"TeamSenders": func(ctx context.Context, other *store.Team, _ victim) error {
		all, err := other.TeamSenders(ctx)
		return wantNone(len(all), err)
	},
	"SetTeamSender": func(ctx context.Context, other *store.Team, v victim) error {
		if err := other.SetTeamSender(ctx, dmarcd.TeamSender{Key: v.sender, Name: "forged"}); err != nil {
			return err
		}
		return other.RemoveTeamSender(ctx, v.sender)
	},
	"RemoveTeamSender": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RemoveTeamSender(ctx, v.sender))
	},
	"ActiveDomains": func(ctx context.Context, other *store.Team, _ victim) error {
		all, active, open, err := other.ActiveDomains(ctx)
		return wantNone(all+active+len(open), err)
	},
	"SetTags": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetTags(ctx, v.domain.Name, []string{"theirs"}))
	},
	"DomainTags": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.DomainTags(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"Tags": func(ctx context.Context, other *store.Team, _ victim) error {
		tags, err := other.Tags(ctx)
		return wantNone(len(tags), err)
	},
	"Tagged": func(ctx context.Context, other *store.Team, _ victim) error {
		domains, err := other.Tagged("").Domains(ctx, "", 100)
		return wantNone(len(domains), err)
	},
}
