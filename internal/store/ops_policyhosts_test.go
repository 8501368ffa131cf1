package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store"
)

const somePolicy = "version: STSv1\nmode: testing\nmx: mail.example.com\nmax_age: 604800"

// policyBase is what the name of a host answers beside its TXT record.
var policyBase = []store.ZoneRecord{{Type: dns.A, Data: "192.0.2.1"}}

// publishPolicy publishes a version of the MTA-STS record of our domain, and returns its host.
func (in *inbox) publishPolicy(t *store.Team, base int64) store.PolicyHost {
	in.Helper()
	v := musttest.Get(t.PublishRecord(in.Context(), ours, base, dmarcd.RecordVersion{Kind: dmarcd.RecordMTASTS, Content: somePolicy}, nil))(in)
	return in.policyHost(v.Label)
}

func (in *inbox) policyHost(label string) store.PolicyHost {
	in.Helper()
	return musttest.Get(in.store.PolicyHost(in.Context(), label))(in)
}

// TestPolicyHosts serves, changes, and withdraws a policy.
func TestPolicyHosts(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.add(ours)
		in.openZone("a")
		h := in.publishPolicy(in.team, 0)
		if h.Domain != ours || h.Policy != somePolicy || h.Team != in.team.ID() || h.Verified || h.Published != "" || !h.ExpiresAt.IsZero() {
			in.Errorf("got %+v", h)
		}
		version, changed, err := in.store.PolicyHosts(ctx, 0)
		if err != nil || version != h.Version || len(changed) != 1 || changed[0] != h {
			in.Errorf("changes: got %d, %+v, %v", version, changed, err)
		}
		if teams := musttest.Get(in.store.PolicyTeams(ctx))(in); len(teams) != 1 || teams[0] != in.team.ID() {
			in.Errorf("due: got the teams %v", teams)
		}
		slots := map[dmarcd.TeamID]int{in.team.ID(): 5}
		for want := 1; want >= 0; want-- { // the second claim finds the first
			if claimed := musttest.Get(in.store.ClaimPolicyHosts(ctx, time.Minute, slots))(in); len(claimed) != want {
				in.Errorf("claim: got %+v, want %d", claimed, want)
			}
		}

		// The id is published when all replicas serve the policy, and the CNAME record is there.
		in.must(in.store.ServePolicyHost(ctx, h.Label, policyBase))
		if published := musttest.Get(in.store.PublishPolicy(ctx, h))(in); published {
			in.Error("published without a CNAME record")
		}
		h = musttest.Get(in.store.VerifyPolicyHost(ctx, h.Label, true))(in)
		end := in.clock.Now().Add(24 * time.Hour)
		h = musttest.Get(in.store.CertifyPolicyHost(ctx, h.Label, end, end.Add(-time.Hour)))(in)
		if got := in.policyHost(h.Label); got != h || !got.Verified || !got.NotAfter.Equal(end) {
			in.Errorf("got %+v, want %+v", got, h)
		}
		in.must(in.store.LeasePolicies(ctx, h.Version-1))
		if served, published := musttest.Get(in.store.PolicyServed(ctx, h.Version))(in), musttest.Get(in.store.PublishPolicy(ctx, h))(in); served || published {
			in.Errorf("a replica is behind: got %v, %v", served, published)
		}
		in.must(in.store.LeasePolicies(ctx, h.Version))
		if served, published := musttest.Get(in.store.PolicyServed(ctx, h.Version))(in), musttest.Get(in.store.PublishPolicy(ctx, h))(in); !served || !published {
			in.Errorf("got %v, %v", served, published)
		}
		if zone := in.zone(); !strings.Contains(zone, h.Label+" v=STSv1; id="+h.ID) {
			in.Errorf("zone: got %s, want the id %s", zone, h.ID)
		}
		in.must(in.store.EndPolicies(ctx))
		if musttest.Get(in.store.PolicyServed(ctx, h.Version))(in) {
			in.Error("served by no replica")
		}

		// What an authority or a server says may be anything.
		for _, problem := range []string{strings.Repeat("é\xff\x00", 400), strings.Repeat("\xff", 400)} {
			in.must(in.store.PolicyHostChecked(ctx, in.policyHost(h.Label), in.clock.Now().Add(time.Hour), problem))
		}
		if got := in.policyHost(h.Label); got.Failures != 2 || got.Problem == "" || len(got.Problem) > 500 {
			in.Errorf("got %+v", got)
		}
		in.must(in.store.PolicyHostChecked(ctx, in.policyHost(h.Label), in.clock.Now().Add(time.Hour), ""))

		changedPolicy := in.publishPolicy(in.team, 1)
		if changedPolicy.Label != h.Label || changedPolicy.ID == h.ID || changedPolicy.Published != h.ID || changedPolicy.Failures != 0 || !changedPolicy.Verified {
			in.Errorf("got %+v", changedPolicy)
		}
		if zone := in.zone(); !strings.Contains(zone, "id="+h.ID) {
			in.Errorf("zone: got %s, want the last id", zone)
		}
		in.must(in.team.StopRecord(ctx, ours, dmarcd.RecordMTASTS))
		stopped := in.policyHost(h.Label)
		if stopped.Team != 0 || !strings.Contains(stopped.Policy, "mode: none") || stopped.ID == changedPolicy.ID || stopped.ExpiresAt.IsZero() {
			in.Errorf("got %+v", stopped)
		}
		if _, err := in.store.RemovePolicyHost(ctx, h.Label); !errors.Is(err, dmarcd.ErrConflict) {
			in.Errorf("remove one that is served: got %v", err)
		}
		in.clock.advance(stopped.ExpiresAt.Sub(in.clock.Now()))
		for _, want := range []bool{false, true} { // the second finds none
			if shared := musttest.Get(in.store.RemovePolicyHost(ctx, h.Label))(in); shared != want {
				in.Errorf("remove: got %v, want %v", shared, want)
			}
		}
		if _, err := in.store.PolicyHost(ctx, h.Label); !errors.Is(err, dmarcd.ErrNotFound) {
			in.Errorf("removed: got %v", err)
		}
	})
}

// TestPolicyHostsOfTwoTeams checks that one record of a domain is served.
func TestPolicyHostsOfTwoTeams(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		other := newTeam(in, in.store, "b")
		in.add(ours)
		addDomain(in, other, ours)
		in.openZone("a")
		mine, theirs := in.publishPolicy(in.team, 0), in.publishPolicy(other, 0)
		for _, label := range []string{mine.Label, theirs.Label} {
			musttest.Get(in.store.VerifyPolicyHost(ctx, label, true))(in)
		}
		mine, theirs = in.policyHost(mine.Label), in.policyHost(theirs.Label)
		if mine.Verified || !theirs.Verified || mine.Version != theirs.Version {
			in.Errorf("got %+v and %+v", mine, theirs)
		}
		_, changed, err := in.store.PolicyHosts(ctx, mine.Version-1)
		if err != nil || len(changed) != 2 || changed[0].Label != mine.Label {
			in.Errorf("got %+v, %v; want the one that is not served first", changed, err)
		}
		in.must(other.StopRecord(ctx, ours, dmarcd.RecordMTASTS))
		in.clock.advance(in.policyHost(theirs.Label).ExpiresAt.Sub(in.clock.Now()))
		if shared := musttest.Get(in.store.RemovePolicyHost(ctx, theirs.Label))(in); !shared {
			in.Error("the other record needs the certificate")
		}
	})
}

// TestOrders checks the limits of an authority.
func TestOrders(t *testing.T) {
	eachInbox(t, func(in *inbox) {
		ctx := in.Context()
		in.openZone("a")
		order := func(renewal, waits bool) time.Time {
			in.Helper()
			wait := musttest.Get(in.store.CountOrder(ctx, ours, renewal))(in)
			if !wait.IsZero() != waits {
				in.Fatalf("order: got to wait until %v, want %v", wait, waits)
			}
			return wait
		}
		for range 32 {
			order(false, false)
		}
		order(false, true)
		for range 8 {
			order(true, false)
		}
		week := 7 * 24 * time.Hour
		if wait := order(true, true); !wait.Equal(in.clock.Now().Add(week)) {
			in.Errorf("got %v, want a week", wait)
		}
		in.clock.advance(week)
		order(false, false)
		for _, organization := range []string{ours, ""} {
			until := in.clock.Now().Add(time.Hour)
			for range 2 { // the second replaces the first
				in.must(in.store.PauseOrders(ctx, organization, until))
			}
			if wait := order(true, true); !wait.Equal(until) {
				in.Errorf("got %v, want %v", wait, until)
			}
			in.clock.advance(time.Hour)
		}
		order(true, false)
	})
}
