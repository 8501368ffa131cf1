package e2e_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// replicate starts two servers on the same database concurrently.
func replicate(in *installation) [2]*server {
	in.t.Helper()
	replicas := [2]*server{in.start(), in.start()}
	for _, s := range replicas {
		s.await()
	}
	var printed []string
	daemon.Eventually(in.t, daemon.StartLimit, "one replica prints a token", func() bool {
		printed = nil
		for _, s := range replicas {
			printed = append(printed, tokenPattern.FindAllString(s.Printed(), -1)...)
		}
		return len(printed) > 0
	})
	in.token = printed[0]
	in.remember(in.token)
	return replicas
}

func TestReplicasStartTogether(t *testing.T) {
	t.Parallel()
	onPostgres(t, "", func(t *testing.T, in *installation) {
		in.db = storetest.EmptyPostgres(t) // both migrate it
		replicas := replicate(in)
		for _, s := range replicas {
			if got := s.statusWith(in.token); got != http.StatusOK {
				t.Errorf("the printed token: got status %d want 200", got)
			}
			s.outside("/readyz").wantStatus(t, http.StatusOK)
			s.Stop()
		}
		// Standard output is complete now.
		printed := append(tokenPattern.FindAllString(replicas[0].Printed(), -1),
			tokenPattern.FindAllString(replicas[1].Printed(), -1)...)
		if len(printed) != 1 {
			t.Errorf("got %d tokens printed by two replicas, want 1", len(printed))
		}
		if teams := listed[teamEntry](in, "team", "list"); len(teams) != 1 {
			t.Errorf("got %d teams want 1", len(teams))
		}
		if tokens := listed[tokenEntry](in, "token", "list", "--team", "default"); len(tokens) != 1 {
			t.Errorf("got %d tokens want 1", len(tokens))
		}
	})
}

func TestReplicasAnswerAsOne(t *testing.T) {
	t.Parallel()
	onPostgres(t, exampleZone, func(t *testing.T, in *installation) {
		replicas := replicate(in)
		for round := range 6 {
			one, other := replicas[round%2], replicas[(round+1)%2]
			added := one.add("example.com")
			if diff := cmp.Diff(added, other.read("example.com")); diff != "" {
				t.Errorf("added on one replica (-there +on the other):\n%s", diff)
			}
			other.send(adding(in.token, "example.com")).wantStatus(t, http.StatusConflict)
			if got := other.list(); !slices.Equal(got, []string{"example.com"}) {
				t.Errorf("the list of the other: got %v want example.com", got)
			}
			if diff := cmp.Diff(other.verify("example.com", "conclusive"), one.read("example.com")); diff != "" {
				t.Errorf("verified on one replica (-there +on the other):\n%s", diff)
			}
			one.get("/reports/example.com").wantBody(t, zeros)
			other.remove("example.com")
			one.get("/domains/example.com").wantStatus(t, http.StatusNotFound)
			one.get("/domains").wantBody(t, `[]`)
		}
	})
}

func TestReplicasAddADomainOnce(t *testing.T) {
	t.Parallel()
	onPostgres(t, "", func(t *testing.T, in *installation) {
		replicas := replicate(in)
		statuses := make([]int, 16)
		var asking sync.WaitGroup
		for i := range statuses {
			asking.Go(func() {
				if a, err := replicas[i%2].try(adding(in.token, "race.example")); err != nil {
					t.Error(err)
				} else {
					statuses[i] = a.status
				}
			})
		}
		asking.Wait()
		slices.Sort(statuses)
		if statuses[0] != http.StatusCreated || slices.Index(statuses, http.StatusConflict) != 1 || statuses[15] != http.StatusConflict {
			t.Errorf("got the statuses %v want one 201, the others 409", statuses)
		}
	})
}

func TestReplicasReject(t *testing.T) {
	t.Parallel()
	onPostgres(t, "", func(t *testing.T, in *installation) {
		replicas := replicate(in)
		token := in.newToken("default", "--name", "short-lived")
		for _, s := range replicas {
			if got := s.statusWith(token); got != http.StatusOK {
				t.Fatalf("before: got status %d want 200", got)
			}
		}
		in.do("token", "revoke", in.tokenID("default", "short-lived"))
		for _, s := range replicas {
			s.soon("the revoked token is refused", token, http.StatusUnauthorized)
		}
		in.do("team", "deny", "default")
		for _, s := range replicas {
			s.soon("the denied team is refused", in.token, http.StatusForbidden)
		}
	})
}
