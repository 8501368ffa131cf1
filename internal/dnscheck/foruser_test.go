package dnscheck_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
)

// attribution records which queries are made for a user.
type attribution struct {
	mu      sync.Mutex
	forUser []bool
}

func (a *attribution) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forUser = append(a.forUser, dns.IsForUser(ctx))
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Text: []string{"v=DMARC1; p=none"}}}}
}

// forgetful is a team that stores nothing.
type forgetful struct{}

func (forgetful) ID() dmarcd.TeamID { return 1 }

func (forgetful) SaveCheck(context.Context, string, dmarcd.Check, dmarcd.Plan) (dmarcd.Domain, error) {
	return dmarcd.Domain{}, nil
}

// A user who has just changed a record must not get the answer to an earlier query.
func TestQueriesForAUser(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		occasion dnscheck.Occasion
		want     bool
	}{
		{"scheduled", dnscheck.Scheduled, false},
		{"requested", dnscheck.Requested, true},
		{"created", dnscheck.Created, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			queries := &attribution{}
			checker := dnscheck.New(dnscheck.Options{Resolver: queries, Now: time.Now})
			if _, _, err := checker.Check(t.Context(), forgetful{}, "example.com", test.occasion); err != nil {
				t.Fatal(err)
			}
			if len(queries.forUser) == 0 || slices.Contains(queries.forUser, !test.want) {
				t.Errorf("got %v, want queries with %v", queries.forUser, test.want)
			}
		})
	}
}
