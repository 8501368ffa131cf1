package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// TeamSenders returns the senders that the team added or corrected, by key.
func (t *Team) TeamSenders(ctx context.Context) ([]dmarcd.TeamSender, error) {
	return see(t, func() ([]dmarcd.TeamSender, error) { return t.team.TeamSenders(ctx) })
}

// SetTeamSender adds a sender to those of the team, or replaces the one with its key, and
// returns it in its canonical form. Without a key, it gets one made of its name. networks are
// CIDR prefixes or addresses. A sender that is not known needs something by which it is
// recognized.
func (t *Team) SetTeamSender(ctx context.Context, sender dmarcd.TeamSender, networks []string) (dmarcd.TeamSender, error) {
	if err := t.may(dmarcd.RightChange); err != nil {
		return dmarcd.TeamSender{}, err
	}
	if sender.Key == "" {
		own, err := t.team.TeamSenders(ctx)
		if err != nil {
			return dmarcd.TeamSender{}, err
		}
		sender.Key = newSenderKey(sender.Name, own)
	}
	sender, err := dmarcd.ParseTeamSender(sender, networks)
	if err != nil {
		return dmarcd.TeamSender{}, err
	}
	_, isSystem := dmarcd.SystemNumber(sender.Key)
	if !sender.HasClues() && !isSystem && !t.service.options.Insight.Knows(sender.Key) {
		return dmarcd.TeamSender{}, &dmarcd.InvalidError{Field: "networks", Message: "Name a network, a host or a domain by which the sender is recognized."}
	}
	if err := t.checkClues(ctx, sender); err != nil {
		return dmarcd.TeamSender{}, err
	}
	return sender, t.team.SetTeamSender(ctx, sender, t.actor.to("sender.set", sender.Key, sender.Name))
}

// newSenderKey returns a key that no sender of the team has.
func newSenderKey(name string, own []dmarcd.TeamSender) string {
	base := dmarcd.SenderKey(name)
	key := base
	for n := 2; slices.ContainsFunc(own, func(s dmarcd.TeamSender) bool { return s.Key == key }); n++ {
		key = fmt.Sprintf("%s-%d", base, n)
	}
	return key
}

// checkClues rejects names that more than one sender has: public suffixes, and as a signing
// domain those that the team monitors.
func (t *Team) checkClues(ctx context.Context, sender dmarcd.TeamSender) error {
	for _, host := range sender.Hosts {
		if dmarc.IsPublicSuffix(host) {
			return &dmarcd.InvalidError{Field: "hosts", Message: fmt.Sprintf("Hosts of many senders are below %s. Use a longer name.", host)}
		}
	}
	for _, domain := range sender.Domains {
		if dmarc.IsPublicSuffix(domain) {
			return &dmarcd.InvalidError{Field: "domains", Message: fmt.Sprintf("Many senders have domains below %s. Use a longer name.", domain)}
		}
		switch _, err := t.team.Domain(ctx, domain); {
		case err == nil:
			return &dmarcd.InvalidError{Field: "domains", Message: fmt.Sprintf(
				"All your senders use %s. Use a domain that only this sender signs with or sends from, or its hosts or networks.", domain)}
		case !errors.Is(err, dmarcd.ErrNotFound):
			return err
		}
	}
	return nil
}

// RemoveTeamSender removes a sender from those of the team, or returns dmarcd.ErrNotFound.
func (t *Team) RemoveTeamSender(ctx context.Context, key string) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	return t.team.RemoveTeamSender(ctx, key, t.actor.to("sender.remove", key, ""))
}

// SetSenderClass sets the class of a sender for a domain; "" clears it. An address or a network is
// then a sender of its own.
func (t *Team) SetSenderClass(ctx context.Context, name, sender string, class dmarcd.Class) error {
	if name == "" {
		return dmarcd.ErrNotFound
	}
	return t.SetSenderClasses(ctx, name, map[string]dmarcd.Class{sender: class})
}

// maxClassesAtOnce limits the senders of one SetSenderClasses.
const maxClassesAtOnce = 1000

// SetSenderClasses is SetSenderClass for several senders by their keys, of which it changes all or
// none. If name is "", it sets their classes for all domains of the team; the class that was set for
// a domain wins.
func (t *Team) SetSenderClasses(ctx context.Context, name string, classes map[string]dmarcd.Class) error {
	if err := t.may(dmarcd.RightChange); err != nil {
		return err
	}
	if name != "" {
		domain, err := t.named(ctx, dmarcd.RightChange, name)
		if err != nil {
			return err
		}
		name = domain.Name
	}
	switch {
	case len(classes) == 0:
		return &dmarcd.InvalidError{Field: "sender", Message: "Select at least one sender."}
	case len(classes) > maxClassesAtOnce:
		return &dmarcd.InvalidError{Field: "sender", Message: fmt.Sprintf("Select at most %d senders at once.", maxClassesAtOnce)}
	}
	known := make(map[string]dmarcd.Class, len(classes))
	audit := make([]dmarcd.AuditEntry, 0, len(classes))
	for _, sender := range slices.Sorted(maps.Keys(classes)) {
		word := string(cmp.Or(classes[sender], "automatic"))
		key, err := t.knownSender(ctx, sender)
		if err == nil && classes[sender] != "" {
			_, err = dmarcd.ParseSenderClass(word)
		}
		if err != nil {
			return err
		}
		known[key] = classes[sender]
		audit = append(audit, t.actor.to("sender.class", cmp.Or(name, "all domains"), key+", "+word))
	}
	return t.team.SetSenderClasses(ctx, name, known, audit...)
}

// knownSender returns the canonical form of the key of a sender, or an *dmarcd.InvalidError if no
// sender can have it.
func (t *Team) knownSender(ctx context.Context, key string) (string, error) {
	key, err := dmarcd.ParseSenderKey(key)
	if err != nil {
		return "", err
	}
	base := dmarcd.SenderBase(key)
	if _, isSystem := dmarcd.SystemNumber(base); isSystem || base == "" || base == "-" || t.service.options.Insight.Knows(base) {
		return key, nil
	}
	own, err := t.team.TeamSenders(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(own, func(s dmarcd.TeamSender) bool { return s.Key == base }) {
		return "", &dmarcd.InvalidError{Field: "key", Message: "There is no such sender. Use a key that the list of senders shows, an address or a network."}
	}
	return key, nil
}
