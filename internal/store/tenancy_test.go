package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// victim is what the other team tries to reach.
type victim struct {
	domain dmarcd.Domain
	token  dmarcd.Token
}

// attacks holds, for every method of store.Team, a call of it as another team
// with the victim's names and ids, and what must come back. A method that is
// missing here fails the test.
var attacks = map[string]func(ctx context.Context, other *store.Team, v victim) error{
	"Domain": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.Domain(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"Domains": func(ctx context.Context, other *store.Team, _ victim) error {
		domains, err := other.Domains(ctx, "", 100)
		return wantNone(len(domains), err)
	},
	"AddDomain": func(ctx context.Context, other *store.Team, v victim) error {
		domain, err := other.AddDomain(ctx, v.domain.Name, time.Time{})
		if err != nil {
			return err
		}
		if domain.ID == v.domain.ID || domain.ReportMailbox == v.domain.ReportMailbox || domain.Record != "" {
			return errors.New("the same name shares something with the victim's domain")
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"AddDomains": func(ctx context.Context, other *store.Team, v victim) error {
		added, err := other.AddDomains(ctx, []string{v.domain.Name}, time.Time{})
		if err != nil || added != 1 {
			return errors.Join(err, errors.New("the victim's name was not free for another team"))
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"SetPurpose": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.SetPurpose(ctx, v.domain.Name, dmarcd.PurposePersonal))
	},
	"DeleteDomain": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.DeleteDomain(ctx, v.domain.Name))
	},
	"SaveCheck": func(ctx context.Context, other *store.Team, v victim) error {
		check := dmarcd.Check{At: time.Unix(2e9, 0), Conclusive: true, Record: "forged"}
		_, err := other.SaveCheck(ctx, v.domain.Name, check, dmarcd.Plan{})
		if err := wantNotFound(err); err != nil {
			return err
		}
		// A record that sends reports to the victim's address does not make
		// another team's domain active.
		if _, err := other.AddDomain(ctx, v.domain.Name, time.Time{}); err != nil {
			return err
		}
		check.Usable, check.NeedsMailbox, check.Mailboxes = true, true, []string{v.domain.ReportMailbox}
		domain, err := other.SaveCheck(ctx, v.domain.Name, check, dmarcd.Plan{})
		if err != nil || domain.Active {
			return errors.Join(err, errors.New("the victim's mailbox made another team's domain active"))
		}
		return other.DeleteDomain(ctx, v.domain.Name)
	},
	"SaveFullCheck": func(ctx context.Context, other *store.Team, v victim) error {
		check := dmarcd.Check{At: time.Unix(2e9, 0), Conclusive: true, Record: "forged"}
		_, err := other.SaveFullCheck(ctx, v.domain.Name, check, dmarcd.Plan{}, store.CheckEntry{Document: "forged"})
		return wantNotFound(err)
	},
	"LatestCheck": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.LatestCheck(ctx, v.domain.Name)
		return wantNotFound(err)
	},
	"Checks": func(ctx context.Context, other *store.Team, v victim) error {
		checks, err := other.Checks(ctx, v.domain.Name, store.Cursor{}, 100)
		return wantNone(len(checks), err)
	},
	"Events": func(ctx context.Context, other *store.Team, v victim) error {
		events, err := other.Events(ctx, store.EventFilter{}, store.Cursor{}, 100)
		if err := wantNone(len(events), err); err != nil {
			return err
		}
		events, err = other.Events(ctx, store.EventFilter{Domain: v.domain.Name}, store.Cursor{}, 100)
		return wantNone(len(events), err)
	},
	"DomainSummary": func(ctx context.Context, other *store.Team, v victim) error {
		_, err := other.DomainSummary(ctx, v.domain.Name, dmarcd.Days{})
		return wantNotFound(err)
	},
	"Summary": func(ctx context.Context, other *store.Team, _ victim) error {
		sum, err := other.Summary(ctx, dmarcd.Days{})
		return wantNone(int(sum.Total()), err)
	},
	"AddCounts": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.AddCounts(ctx, v.domain.Name, []dmarcd.DayCount{{Day: 1, Summary: dmarcd.Summary{Compliant: 1}}}))
	},
	"CreateToken": func(ctx context.Context, other *store.Team, v victim) error {
		token, err := other.CreateToken(ctx, store.NewToken{Scope: dmarcd.ScopeRead, Hash: sha256.Sum256([]byte("other"))})
		if err == nil && token.Team == v.token.Team {
			err = errors.New("a token of another team resolves to the victim")
		}
		return err
	},
	"Tokens": func(ctx context.Context, other *store.Team, v victim) error {
		tokens, err := other.Tokens(ctx)
		for _, token := range tokens {
			if token.ID == v.token.ID {
				err = errors.New("the victim's token is listed")
			}
		}
		return err
	},
	"RevokeToken": func(ctx context.Context, other *store.Team, v victim) error {
		return wantNotFound(other.RevokeToken(ctx, v.token.ID))
	},
}

func wantNotFound(err error) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	return errors.Join(errors.New("want ErrNotFound, got"), err)
}

func wantNone(n int, err error) error {
	if n != 0 {
		err = errors.Join(err, errors.New("another team's data came back"))
	}
	return err
}

func TestNoMethodReachesAnotherTeam(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		s := db.Open(t, store.Options{})
		mine, v := addVictim(t, s)
		before := state(t, mine, v)

		methods := reflect.TypeFor[*store.Team]()
		for i := range methods.NumMethod() {
			name := methods.Method(i).Name
			attack, ok := attacks[name]
			if !ok {
				t.Errorf("store.Team.%s has no attack in this test: add one", name)
				continue
			}
			team, err := s.CreateTeam(t.Context(), "other "+name, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := attack(t.Context(), s.Team(team.ID), v); err != nil {
				t.Errorf("%s as another team: %v", name, err)
			}
			if after := state(t, mine, v); after != before {
				t.Errorf("%s as another team changed the victim:\nbefore %+v\nafter  %+v", name, before, after)
			}
		}
	})
}

func addVictim(t *testing.T, s *store.Store) (*store.Team, victim) {
	t.Helper()
	ctx := t.Context()
	team, err := s.CreateTeam(ctx, "victim", true)
	if err != nil {
		t.Fatal(err)
	}
	mine := s.Team(team.ID)
	if _, err := mine.AddDomain(ctx, "example.com", time.Time{}); err != nil {
		t.Fatal(err)
	}
	check := dmarcd.Check{At: time.Unix(1e9, 0), Conclusive: true, Usable: true, Record: "v=DMARC1; p=reject", Policy: "reject"}
	if _, err := mine.SaveFullCheck(ctx, "example.com", check, dmarcd.Plan{}, store.CheckEntry{Document: "{}"}); err != nil {
		t.Fatal(err)
	}
	check.At, check.Asked, check.Policy = check.At.Add(time.Hour), true, "none" // an event
	domain, err := mine.SaveCheck(ctx, "example.com", check, dmarcd.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	if err := mine.AddCounts(ctx, "example.com", []dmarcd.DayCount{{Day: 20000, Summary: dmarcd.Summary{Compliant: 7, NonCompliant: 3}}}); err != nil {
		t.Fatal(err)
	}
	token, err := mine.CreateToken(ctx, store.NewToken{Name: "ci", Scope: dmarcd.ScopeWrite, Hash: sha256.Sum256([]byte("mine"))})
	if err != nil {
		t.Fatal(err)
	}
	return mine, victim{domain: domain, token: token}
}

// victimState is all that the victim can see of itself.
type victimState struct {
	domain          dmarcd.Domain
	domains, tokens int
	checks, events  int
	token           dmarcd.Token
	domainSum, sum  dmarcd.Summary
}

func state(t *testing.T, mine *store.Team, v victim) victimState {
	t.Helper()
	ctx := t.Context()
	var got victimState
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	got.domain, err = mine.Domain(ctx, v.domain.Name)
	must(err)
	domains, err := mine.Domains(ctx, "", 100)
	must(err)
	tokens, err := mine.Tokens(ctx)
	must(err)
	checks, err := mine.Checks(ctx, v.domain.Name, store.Cursor{}, 100)
	must(err)
	events, err := mine.Events(ctx, store.EventFilter{}, store.Cursor{}, 100)
	must(err)
	got.domains, got.tokens, got.token = len(domains), len(tokens), tokens[0]
	got.checks, got.events = len(checks), len(events)
	got.domainSum, err = mine.DomainSummary(ctx, v.domain.Name, dmarcd.Days{})
	must(err)
	got.sum, err = mine.Summary(ctx, dmarcd.Days{})
	must(err)
	return got
}
