package browser_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

var (
	invitationPath = regexp.MustCompile(`/app/invitation/\w+`)
	tokenPattern   = regexp.MustCompile(`dmd_[0-9A-Za-z]{40}`)
)

// site is a running binary with the DNS that it asks.
type site struct {
	*daemon.Daemon
	t   *testing.T
	dns *resolvertest.Server
	db  storetest.DB
	in  daemon.Installation

	origin string // scheme, host and port
	token  string // of the team default
	link   string // the path of the one-time link of the first user
}

// serve starts an empty installation on SQLite that takes reports at reports.example,
// with further settings of the form NAME=value.
func serve(t *testing.T, zone string, settings ...string) *site {
	t.Helper()
	s := &site{t: t, dns: resolvertest.Start(t, zone), db: storetest.SQLite(t)}
	s.in = daemon.Installation{Program: program, Settings: []string{
		"DMARCD_DATABASE=" + s.db.DSN, "DMARCD_DATA=" + filepath.Join(t.TempDir(), "data"), "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + s.dns.Addr(), "DMARCD_REPORT_DOMAIN=reports.example",
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
	}}.With(settings...)
	s.start("serve")
	s.token = s.printed(tokenPattern)
	s.link = s.printed(invitationPath)
	return s
}

// serveDemo starts the sample team.
func serveDemo(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	s.in = daemon.Installation{Program: program, Settings: []string{
		"TMPDIR=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0",
	}}
	s.start("demo")
	s.link = s.printed(invitationPath)
	return s
}

// start runs the binary until the test ends, and returns when it serves.
func (s *site) start(command string) {
	s.t.Helper()
	s.Daemon = s.in.Start(s.t, command)
	s.t.Cleanup(func() {
		s.Stop()
		for line := range strings.Lines(s.Log()) {
			if strings.Contains(line, `"level":"ERROR"`) {
				s.t.Errorf("the daemon logged: %s", line)
			}
		}
	})
	s.Await()
	s.origin = "http://" + s.HTTP
}

// printed waits for something that the first start prints.
func (s *site) printed(pattern *regexp.Regexp) (found string) {
	s.t.Helper()
	daemon.Eventually(s.t, daemon.StartLimit, "the first start prints "+pattern.String(), func() bool {
		found = pattern.FindString(s.Printed())
		return found != ""
	})
	return found
}

// run runs a command of the binary on the installation and returns what it prints.
func (s *site) run(args ...string) string {
	s.t.Helper()
	return s.in.Do(s.t, args...)
}

// invite makes a one-time link for a person and returns its path.
func (s *site) invite(email, team, role string) string {
	s.t.Helper()
	link := musttest.Get(url.Parse(s.run("user", "invite", email, "--team", team, "--role", role)))(s.t)
	return link.Path
}

// setZone replaces the zone of the DNS server.
func (s *site) setZone(zone string) {
	s.t.Helper()
	musttest.Do(s.t, s.dns.Set(zone))
}
