package e2e_test

import (
	"net/http"
	"testing"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// me is the part of GET /me that tests compare.
type me struct {
	Team   struct{ Name string }
	Token  struct{ ID, Name, Scope string }
	Scopes []string
	Quotas map[string]struct {
		Limit *int64
		Used  int64
	}
	Server struct{ Version string }
}

// meOf returns what a token finds about itself.
func (s *server) meOf(token string) me {
	s.in.t.Helper()
	return readAs[me](s.in.t, s.send(request{method: http.MethodGet, path: "/me", token: token}))
}

func TestMe(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		s.add("example.com")
		in.do("team", "quota", "default", "domains=7")
		read := in.newToken("default", "--scope", "read", "--name", "dashboard")
		got := s.meOf(read)
		if got.Team.Name != "default" || got.Token.Name != "dashboard" || got.Token.Scope != "read" || len(got.Scopes) != 1 || got.Server.Version == "" {
			t.Errorf("got %+v, want the team default, the token dashboard that reads, and a version", got)
		}
		domains := got.Quotas["domains"]
		if domains.Limit == nil || *domains.Limit != 7 || domains.Used != 1 || got.Quotas["mailboxes"].Limit != nil || len(got.Quotas) != 5 {
			t.Errorf("got the quotas %+v, want 1 of 7 domains, and no limit of mailboxes", got.Quotas)
		}
		if written := s.meOf(in.token); len(written.Scopes) != 2 {
			t.Errorf("got the scopes %v, want read and write", written.Scopes)
		}
		// The last use may change between two requests.
		daemon.Eventually(t, answerLimit, "the answer is not modified", func() bool {
			return s.ifNoneMatch("/me", s.get("/me").header.Get("ETag")).status == http.StatusNotModified
		})
	})
}
