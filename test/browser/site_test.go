package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

const (
	// startLimit is generous: the machine may be busy with other tests.
	startLimit = 5 * time.Minute // the sample team is a year of reports, on a machine that does all tests at once
	// pollInterval is how often eventually looks.
	pollInterval = 10 * time.Millisecond
)

var (
	welcomePath  = regexp.MustCompile(`/app/welcome/\w+`)
	tokenPattern = regexp.MustCompile(`dmd_[0-9A-Za-z]{40}`)
)

// site is a running binary with the DNS that it asks.
type site struct {
	t           *testing.T
	dns         *resolvertest.Server
	db          storetest.DB
	environment []string
	folder      string
	stdout, log *output

	origin string // scheme, host and port
	token  string // of the team default
	link   string // the path of the one-time link of the first user
}

// output collects what a process writes. It is safe for concurrent use.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// serve starts an empty installation on SQLite that takes reports at reports.example,
// with further settings of the form NAME=value.
func serve(t *testing.T, zone string, settings ...string) *site {
	t.Helper()
	s := &site{t: t, dns: resolvertest.Start(t, zone), db: storetest.SQLite(t), folder: t.TempDir()}
	s.environment = slices.Concat([]string{
		"DMARCD_DATABASE=" + s.db.DSN, "DMARCD_DATA=" + filepath.Join(s.folder, "data"), "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + s.dns.Addr(), "DMARCD_REPORT_DOMAIN=reports.example", "DMARCD_LOG_FORMAT=json",
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
	}, settings)
	s.start("serve")
	s.token = s.printed(tokenPattern)
	s.link = s.printed(welcomePath)
	return s
}

// serveDemo starts the sample team.
func serveDemo(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, folder: t.TempDir()}
	s.environment = []string{"TMPDIR=" + s.folder, "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_LOG_FORMAT=json"}
	s.start("demo")
	s.link = s.printed(welcomePath)
	return s
}

// start runs the binary until the test ends, and returns when it serves.
func (s *site) start(command string) {
	s.t.Helper()
	s.stdout, s.log = &output{}, &output{}
	process := exec.Command(program, command)
	process.Env, process.Dir = s.environment, s.folder
	process.Stdout, process.Stderr = s.stdout, s.log
	if err := process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait tells
		if err := process.Wait(); err != nil {
			s.t.Errorf("the daemon: %v\n%s", err, s.log)
		}
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, `"level":"ERROR"`) {
				s.t.Errorf("the daemon logged: %s", line)
			}
		}
	})
	eventually(s.t, startLimit, "the daemon serves", func() bool {
		for line := range strings.Lines(s.log.String()) {
			var entry struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "serving" {
				s.origin = "http://" + entry.Address
			}
		}
		return s.origin != ""
	})
}

// printed waits for something that the first start prints.
func (s *site) printed(pattern *regexp.Regexp) (found string) {
	s.t.Helper()
	eventually(s.t, startLimit, "the first start prints "+pattern.String(), func() bool {
		found = pattern.FindString(s.stdout.String())
		return found != ""
	})
	return found
}

// run runs a command of the binary on the installation and returns what it prints.
func (s *site) run(args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), startLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Env, command.Dir = s.environment, s.folder
	var failed bytes.Buffer
	command.Stderr = &failed
	printed, err := command.Output()
	if err != nil {
		s.t.Fatalf("dmarcd %s: %v\n%s", strings.Join(args, " "), err, &failed)
	}
	return strings.TrimSpace(string(printed))
}

// invite makes a one-time link for a person and returns its path.
func (s *site) invite(email, team, role string) string {
	s.t.Helper()
	link, err := url.Parse(s.run("user", "invite", email, "--team", team, "--role", role))
	if err != nil {
		s.t.Fatal(err)
	}
	return link.Path
}

// setZone replaces the zone of the DNS server.
func (s *site) setZone(zone string) {
	s.t.Helper()
	if err := s.dns.Set(zone); err != nil {
		s.t.Fatal(err)
	}
}

// eventually returns when the condition holds and fails the test if that takes
// longer than limit.
func eventually(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for began := time.Now(); !condition(); <-ticker.C {
		if time.Since(began) > limit {
			t.Fatalf("%s: not so after %v", what, limit)
		}
	}
}
