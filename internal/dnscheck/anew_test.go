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

// freshness records whether queries were made with dns.Anew.
type freshness struct {
	mu   sync.Mutex
	anew []bool
}

func (f *freshness) Resolve(ctx context.Context, q dns.Question) dns.Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.anew = append(f.anew, dns.IsAnew(ctx))
	return dns.Answer{Question: q, Outcome: dns.Data, Records: []dns.Record{{Text: []string{"v=DMARC1; p=none"}}}}
}

// forgetful is a team that stores nothing.
type forgetful struct{}

func (forgetful) ID() dmarcd.TeamID { return 1 }

func (forgetful) SaveCheck(context.Context, string, dmarcd.Check, dmarcd.Plan) (dmarcd.Domain, error) {
	return dmarcd.Domain{}, nil
}

// A user who has just changed a record must not get the answer to an earlier query.
func TestAUsersCheckSharesNoAnswer(t *testing.T) {
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
			queries := &freshness{}
			checker := dnscheck.New(dnscheck.Options{Resolver: queries, Now: time.Now})
			if _, _, err := checker.Check(t.Context(), forgetful{}, "example.com", test.occasion); err != nil {
				t.Fatal(err)
			}
			if len(queries.anew) == 0 || slices.Contains(queries.anew, !test.want) {
				t.Errorf("got %v, want queries with %v", queries.anew, test.want)
			}
		})
	}
}
