package e2e_test

import (
	"encoding/json"
)

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
