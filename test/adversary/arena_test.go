package adversary_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

const (
	// memoryLimit is what the daemon may have resident during any attack.
	memoryLimit = 512 << 20
	// memoryNet is where it is killed, so that a bug does not take the machine.
	memoryNet = 1 << 30
	// answerLimit is how long the victim may wait for an answer; see arena.limit for busy
	// machines.
	answerLimit = 10 * time.Second
	// reportDomain is the domain of the reporting addresses.
	reportDomain = "reports.test"
	// password is that of every user.
	password = "correct horse battery staple"
)

// arena is a running daemon with two teams: the victim works, mallory attacks.
type arena struct {
	t       *testing.T
	in      daemon.Installation
	d       *daemon.Daemon
	dns     *hostileDNS
	data    string
	victim  *tenant
	mallory *tenant
	rounds  atomic.Int64 // what the victim has finished
}

// onEach runs an attack on every engine.
func onEach(t *testing.T, attack func(t *testing.T, a *arena), settings ...string) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) { attack(t, enter(t, db, settings...)) })
}

// onSQLite runs an attack for which the engine does not matter.
func onSQLite(t *testing.T, attack func(t *testing.T, a *arena), settings ...string) {
	t.Helper()
	t.Parallel()
	attack(t, enter(t, storetest.SQLite(t), settings...))
}

// enter starts the daemon on an empty database. Limits have their defaults,
// unless the settings say otherwise; connections to loopback are allowed.
func enter(t *testing.T, db storetest.DB, settings ...string) *arena {
	t.Helper()
	a := &arena{t: t, dns: startDNS(t), data: filepath.Join(t.TempDir(), "data")}
	a.in = daemon.Installation{Program: program, MemoryNet: memoryNet, Settings: []string{
		"DMARCD_DATABASE=" + db.DSN, "DMARCD_DATA=" + a.data, "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + a.dns.address, "DMARCD_REPORT_DOMAIN=" + reportDomain,
		"DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_OUTBOUND_ALLOW=127.0.0.0/8",
	}}.With(settings...)
	a.serve()
	a.victim = a.team("victim")
	a.mallory = a.team("mallory")
	a.victim.add("victim.test")
	a.mallory.add("mallory.test")
	return a
}

// serve starts the daemon, again where it was stopped.
func (a *arena) serve() {
	a.t.Helper()
	a.d = a.in.Serve(a.t)
	for _, tenant := range []*tenant{a.victim, a.mallory} {
		if tenant != nil {
			tenant.origin = a.origin()
		}
	}
}

// origin is where the daemon serves, also HTTPS.
func (a *arena) origin() string {
	if slices.Contains(a.in.Settings, "DMARCD_TLS=files") {
		return "https://" + a.d.HTTP
	}
	return "http://" + a.d.HTTP
}

// restart stops the daemon and starts it again.
func (a *arena) restart() {
	a.t.Helper()
	a.d.Stop()
	a.serve()
}

// team makes a team on the whitelist with a token and a user.
func (a *arena) team(name string) *tenant {
	a.t.Helper()
	a.in.Do(a.t, "team", "create", name, "--api")
	v := &tenant{
		t: a.t, name: name, origin: a.origin(), client: newClient(a.t, ""),
		token: a.in.Do(a.t, "token", "create", "--team", name),
		email: "owner@" + name + ".test",
	}
	link := musttest.Get(url.Parse(a.in.Do(a.t, "user", "invite", v.email, "--team", name, "--role", "owner")))(a.t)
	if status := v.post(link.Path, url.Values{"email": {v.email}, "password": {password}}).status; status != http.StatusSeeOther {
		a.t.Fatalf("%s follows the invitation: got status %d want 303", v.email, status)
	}
	return v
}

// address returns the reporting address of a domain.
func (a *arena) address(team, domain string) string {
	a.t.Helper()
	var list []struct {
		Domain  string
		Address *string `json:"report_address"`
	}
	a.in.List(a.t, &list, "domain", "list", "--team", team)
	for _, entry := range list {
		if entry.Domain == domain && entry.Address != nil {
			return *entry.Address
		}
	}
	a.t.Fatalf("team %s has no reporting address for %s: %v", team, domain, list)
	return ""
}

// mailbox returns the part of the reporting address before the @.
func (a *arena) mailbox(team, domain string) string {
	a.t.Helper()
	name, _, _ := strings.Cut(a.address(team, domain), "@")
	return name
}

// eventually is daemon.Eventually.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	daemon.Eventually(t, limit, what, condition)
}
