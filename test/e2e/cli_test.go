package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/test/daemon"
)

// prepare migrates the database of an installation, and creates the team crew.
func prepare(in *installation) {
	in.t.Helper()
	in.do("migrate")
	in.do("team", "create", "crew", "--api")
}

func TestExitStatuses(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		prepare(in)
		in.do("domain", "add", "--team", "crew", "example.com")
		silent := []string{"DMARCD_DNS=127.0.0.1:1"}
		rows := []struct {
			args     string
			settings []string
			want     int
		}{
			{"--help", nil, 0},
			{"", nil, 0},
			{"nonsense", nil, 2},
			{"--nonsense", nil, 2},
			{"serve extra", nil, 2},
			{"team", nil, 0},
			{"team nonsense", nil, 2},
			{"team create", nil, 2},
			{"team create one two", nil, 2},
			{"team create crew", nil, 1},
			{"team create other", nil, 0},
			{"team list", nil, 0},
			{"team list --json", nil, 0},
			{"team allow other", nil, 0},
			{"team allow other", nil, 0},
			{"team allow unknown", nil, 1},
			{"team deny other", nil, 0},
			{"team deny unknown", nil, 1},
			{"team deny", nil, 2},
			{"token create", nil, 2},
			{"token create --team unknown", nil, 1},
			{"token create --team crew --scope owner", nil, 2},
			{"token create --team crew --expires tomorrow", nil, 2},
			{"token create --team crew --expires -1h", nil, 2},
			{"token list", nil, 2},
			{"token list --team unknown", nil, 1},
			{"token list --team crew --json", nil, 0},
			{"token revoke", nil, 2},
			{"token revoke tok_zzzz", nil, 1},
			{"domain list", nil, 2},
			{"domain list --team unknown", nil, 1},
			{"domain list --team crew", nil, 0},
			{"domain add --team crew", nil, 2},
			{"domain add example.org", nil, 2},
			{"domain add --team unknown example.org", nil, 1},
			{"domain add --team crew example.org EXAMPLE.net.", nil, 0},
			{"domain add --team crew example.org", nil, 1},
			{"domain add --team crew fresh.example bad_name", nil, 1},
			{"domain verify --team crew example.com", nil, 0},
			{"domain verify --team crew example.com --json", nil, 0},
			{"domain verify --team crew example.com", silent, 2},
			{"domain verify --team crew unknown.example", nil, 1},
			{"domain verify --team crew", nil, 2},
			{"domain purpose --team crew example.com business", nil, 0},
			{"domain purpose --team crew example.com none", nil, 0},
			{"domain purpose --team crew example.com hobby", nil, 2},
			{"domain purpose --team crew unknown.example business", nil, 1},
			{"domain purpose --team crew example.com", nil, 2},
			{"domain delete --team crew example.net", nil, 0},
			{"domain delete --team crew example.net", nil, 1},
			{"domain delete --team crew", nil, 2},
			{"config", nil, 0},
			{"config --json", nil, 0},
			{"migrate", nil, 0},
			{"backup", nil, 2},
			{"version", nil, 0},
			{"doctor", nil, 0},
			{"doctor --json", nil, 0},
			{"doctor", silent, 1},
			{"team list", []string{"DMARCD_DATABASE=postgres://127.0.0.1:1/none?sslmode=disable"}, 2},
			{"domain list --team crew", []string{"DMARCD_DATABASE=postgres://127.0.0.1:1/none?sslmode=disable"}, 2},
			{"doctor", []string{"DMARCD_DATABASE=postgres://127.0.0.1:1/none?sslmode=disable"}, 1},
			{"team list", []string{"DMARCD_LISTEN=nonsense"}, 2},
		}
		for _, row := range rows {
			r := in.run(command{args: strings.Fields(row.args), settings: row.settings})
			if r.Status != row.want {
				t.Errorf("dmarcd %s %v: got status %d want %d: %s%s", row.args, row.settings, r.Status, row.want, r.Stdout, r.Stderr)
			}
			if r.Status != 0 && strings.TrimSpace(r.Stderr) == "" && !strings.HasPrefix(row.args, "doctor") {
				t.Errorf("dmarcd %s: status %d without a word on standard error", row.args, r.Status)
			}
		}
		// Rejected names did not prevent the valid ones.
		got := []string{}
		for _, entry := range listed[domainEntry](in, "domain", "list", "--team", "crew") {
			got = append(got, entry.Domain)
		}
		if diff := cmp.Diff([]string{"example.com", "example.org", "fresh.example"}, got); diff != "" {
			t.Errorf("domains (-want +got):\n%s", diff)
		}
	})
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(t *testing.T, in *installation) {
		for _, name := range []string{
			"serve", "team create", "team list", "team allow", "team deny", "team export", "team delete", "token create", "token list", "token revoke",
			"domain list", "domain add", "domain verify", "domain delete", "domain purpose",
			"config", "migrate", "backup", "version", "doctor",
		} {
			text := in.do(append(strings.Fields(name), "--help")...)
			if !strings.Contains(text, "dmarcd "+name) {
				t.Errorf("dmarcd %s --help: got %q want an explanation", name, text)
			}
		}
	})
}

func TestTokenCreatePrintsOnlyTheToken(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		prepare(in)
		r := in.run(command{args: []string{"token", "create", "--team", "crew", "--name", "robot", "--scope", "read", "--expires", "720h"}})
		token := strings.TrimSuffix(r.Stdout, "\n")
		if r.Status != 0 || tokenPattern.FindString(token) != token || len(token) != 44 {
			t.Fatalf("got status %d and %d bytes on standard output, want the token alone", r.Status, len(r.Stdout))
		}
		in.remember(token)
		tokens := listed[tokenEntry](in, "token", "list", "--team", "crew")
		if len(tokens) != 1 {
			t.Fatalf("got %d tokens want 1", len(tokens))
		}
		got := tokens[0]
		if got.Name != "robot" || got.Scope != "read" || got.ExpiresAt == nil || got.UsedAt != nil || got.RevokedAt != nil || !strings.HasPrefix(got.ID, "tok_") {
			t.Errorf("got %+v want the token robot, which may read, expires and was never used", got)
		}
		in.do("token", "revoke", got.ID)
		if got := listed[tokenEntry](in, "token", "list", "--team", "crew")[0]; got.RevokedAt == nil {
			t.Error("the list does not tell that the token is revoked")
		}
		in.do("token", "revoke", got.ID) // idempotent
	})
}

func TestTokenListReportsTheLastUse(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		token := in.newToken("default", "--name", "used")
		s.send(request{method: http.MethodGet, path: "/domains", token: token}).wantStatus(t, http.StatusOK)
		daemon.Eventually(t, daemon.StartLimit, "the last use is told", func() bool {
			tokens := listed[tokenEntry](in, "token", "list", "--team", "default")
			i := slices.IndexFunc(tokens, func(e tokenEntry) bool { return e.Name == "used" })
			return tokens[i].UsedAt != nil
		})
	})
}

func TestTeamListReportsTheWhitelist(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		prepare(in)
		in.do("team", "create", "apart")
		allowed := func() map[string]bool {
			api := map[string]bool{}
			for _, entry := range listed[teamEntry](in, "team", "list") {
				if !strings.HasPrefix(entry.ID, "team_") || !timestampPattern.MatchString(entry.CreatedAt) {
					t.Errorf("got %+v want an id that begins team_ and a time", entry)
				}
				api[entry.Name] = entry.API
			}
			return api
		}
		if diff := cmp.Diff(map[string]bool{"crew": true, "apart": false}, allowed()); diff != "" {
			t.Errorf("new teams (-want +got):\n%s", diff)
		}
		in.do("team", "allow", "apart")
		in.do("team", "deny", "crew")
		if diff := cmp.Diff(map[string]bool{"crew": false, "apart": true}, allowed()); diff != "" {
			t.Errorf("after allow and deny (-want +got):\n%s", diff)
		}
	})
}

func TestDomainCommands(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_SCHEDULE_INTERVAL=24h")
		asked := in.dns.Total()
		s.Stop() // the daemon would query DNS for new domains
		r := in.run(command{
			args:  []string{"domain", "add", "--team", "default", "one.example", "-"},
			stdin: "example.com\n\n  BÜCHER.example. \n# a comment\n",
		})
		if r.Status != 0 {
			t.Errorf("add: got status %d want 0: %s", r.Status, r.Stderr)
		}
		if got := in.dns.Total() - asked; got != 0 {
			t.Errorf("add: got %d questions to the DNS want none", got)
		}
		list := listed[domainEntry](in, "domain", "list", "--team", "default")
		var got []string
		for _, entry := range list {
			got = append(got, entry.Domain)
			if entry.CheckedAt != nil || entry.ReportAddress != nil {
				t.Errorf("got %+v want no check yet, and no address without a report domain", entry)
			}
		}
		if diff := cmp.Diff([]string{"example.com", "one.example", "xn--bcher-kva.example"}, got); diff != "" {
			t.Errorf("domains (-want +got):\n%s", diff)
		}

		s = in.serve()
		in.do("domain", "verify", "--team", "default", "example.com")
		if got, want := s.read("example.com").findings(), (findings{true, exampleRecord, "reject"}); got != want {
			t.Errorf("verify: got %v want %v", got, want)
		}
		in.do("domain", "delete", "--team", "default", "Example.COM")
		s.get("/domains/example.com").wantStatus(t, http.StatusNotFound)
		daemon.Eventually(t, daemon.StartLimit, "the daemon checks what was added", func() bool {
			list := listed[domainEntry](in, "domain", "list", "--team", "default")
			return !slices.ContainsFunc(list, func(e domainEntry) bool { return e.CheckedAt == nil })
		})
	})
}

// teamEntry, tokenEntry and domainEntry are elements of the lists that commands print
// with --json.
type (
	teamEntry struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		API       bool   `json:"api"`
		CreatedAt string `json:"created_at"`
	}
	tokenEntry struct {
		ID        string  `json:"id"`
		Name      string  `json:"name"`
		Scope     string  `json:"scope"`
		CreatedAt string  `json:"created_at"`
		ExpiresAt *string `json:"expires_at"`
		UsedAt    *string `json:"used_at"`
		RevokedAt *string `json:"revoked_at"`
	}
	domainEntry struct {
		domain
		ReportAddress *string `json:"report_address"`
		CheckedAt     *string `json:"checked_at"`
	}
)

// listed runs a command with --json and decodes its list.
func listed[T any](in *installation, args ...string) []T {
	in.t.Helper()
	text := in.do(append(args, "--json")...)
	var list []T
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		in.t.Fatalf("%v in %s", err, text)
	}
	return list
}

// tokenID returns the id of a team's token by its name.
func (in *installation) tokenID(team, name string) string {
	in.t.Helper()
	for _, entry := range listed[tokenEntry](in, "token", "list", "--team", team) {
		if entry.Name == name {
			return entry.ID
		}
	}
	in.t.Fatalf("team %s has no token named %q", team, name)
	return ""
}

// reportAddress returns the reporting address of a domain.
func (in *installation) reportAddress(team, name string, settings ...string) string {
	in.t.Helper()
	r := in.run(command{args: []string{"domain", "list", "--team", team, "--json"}, settings: settings})
	var list []domainEntry
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		in.t.Fatalf("%v in %s", err, r.Stdout)
	}
	for _, entry := range list {
		if entry.Domain == name && entry.ReportAddress != nil {
			return *entry.ReportAddress
		}
	}
	in.t.Fatalf("team %s has no reporting address for %s: %s", team, name, r.Stdout)
	return ""
}
