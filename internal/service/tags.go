package service

import (
	"context"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Tagged returns the same use cases, narrowed to the domains with a tag, "" for all: the
// lists of domains, events and reports, the counts by day, the mail, and the advice for
// all domains. What names a domain is not narrowed.
func (t *Team) Tagged(tag string) *Team {
	return &Team{service: t.service, team: t.team.Tagged(tag), actor: t.actor, tag: tag}
}

// SetTags gives a domain tags in place of those that it has, and returns them in their
// canonical form.
func (t *Team) SetTags(ctx context.Context, name string, tags []string) ([]string, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return nil, err
	}
	tags, err := dmarcd.ParseTags(tags)
	if err != nil {
		return nil, err
	}
	domain, err := t.named(ctx, dmarcd.RightChange, name)
	if err != nil {
		return nil, err
	}
	return tags, t.team.SetTags(ctx, domain.Name, tags, t.actor.to("domain.tags", domain.Name, strings.Join(tags, " ")))
}

// DomainTags returns the tags of a domain, in order.
func (t *Team) DomainTags(ctx context.Context, name string) ([]string, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return nil, err
	}
	return t.team.DomainTags(ctx, domain.Name)
}

// Tags returns the tags of the team's domains, in order, with how many domains have each.
func (t *Team) Tags(ctx context.Context) ([]dmarcd.TagCount, error) {
	return see(t, func() ([]dmarcd.TagCount, error) { return t.team.Tags(ctx) })
}
