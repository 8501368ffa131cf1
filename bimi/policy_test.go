package bimi_test

import (
	"slices"
	"testing"

	"github.com/dmarcd/dmarcd/bimi"
)

func TestPreconditions(t *testing.T) {
	t.Parallel()
	const (
		own = "news.example.com"
		org = "example.com"
	)
	for _, tt := range []struct {
		name     string
		policies []bimi.Policy
		want     []bimi.Problem
	}{
		{name: "reject", policies: []bimi.Policy{{Domain: org, P: "reject"}}},
		{name: "quarantine", policies: []bimi.Policy{{Domain: org, P: "quarantine", SP: "reject"}}},
		{name: "quarantine for all", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "100"}}},
		{name: "reject for a part", policies: []bimi.Policy{{Domain: org, P: "reject", Percent: "5"}}},
		{name: "quarantine for a part", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "99"}}, want: []bimi.Problem{{Kind: bimi.PartialQuarantine, Subject: org, Text: "99"}}},
		{name: "a percentage that is none", policies: []bimi.Policy{{Domain: org, P: "quarantine", Percent: "all"}}, want: []bimi.Problem{{Kind: bimi.PartialQuarantine, Subject: org, Text: "all"}}},
		{name: "none", policies: []bimi.Policy{{Domain: org, P: "none"}}, want: []bimi.Problem{{Kind: bimi.PolicyNone, Subject: org, Text: "none"}}},
		{name: "none for subdomains", policies: []bimi.Policy{{Domain: org, P: "reject", SP: "none"}}, want: []bimi.Problem{{Kind: bimi.SubdomainPolicyNone, Subject: org, Text: "none"}}},
		{name: "no policy", policies: []bimi.Policy{{Domain: org}}, want: []bimi.Problem{{Kind: bimi.PolicyMissing, Subject: org}}},
		{name: "testing", policies: []bimi.Policy{{Domain: org, P: "reject", Testing: true}}, want: []bimi.Problem{{Kind: bimi.PolicyTesting, Subject: org, Text: "reject"}}},
		{name: "broken", policies: []bimi.Policy{{Domain: org, Collapsed: true}}, want: []bimi.Problem{{Kind: bimi.PolicyCollapsed, Subject: org}}},
		{name: "broken, whatever it says", policies: []bimi.Policy{{Domain: org, P: "reject", Collapsed: true}}, want: []bimi.Problem{{Kind: bimi.PolicyCollapsed, Subject: org, Text: "reject"}}},
		{
			name: "both domains count", policies: []bimi.Policy{{Domain: own, P: "none"}, {Domain: org, P: "reject", SP: "none"}},
			want: []bimi.Problem{{Kind: bimi.PolicyNone, Subject: own, Text: "none"}, {Kind: bimi.SubdomainPolicyNone, Subject: org, Text: "none"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := bimi.Preconditions(tt.policies...); !slices.Equal(got, tt.want) {
				t.Errorf("got %v want %v", got, tt.want)
			}
		})
	}
}
