package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// commandLimit is how long a command other than serve may take.
const commandLimit = 30 * time.Second

// installation is a database with a data folder, the DNS that it asks, and the
// processes that were started on them.
type installation struct {
	t       *testing.T
	program string // the binary
	db      storetest.DB
	dns     *resolvertest.Server
	data    string
	// token is that of the team default, as the first start printed it.
	token string
	// mayLogErrors is set by tests in which the log may tell of errors.
	mayLogErrors bool

	mu      sync.Mutex
	servers []*server
	secrets map[string]bool // every token that was sent or made
	outputs []string        // what commands printed, tokens that were asked for aside
}

// each runs the test on an installation of every engine whose database has the
// schema and no rows. At the end it stops all processes as an operator does and
// looks for leaked secrets.
func each(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, installed(zone, test))
}

// eachEmpty is each with databases that have no schema.
func eachEmpty(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Parallel()
	storetest.EachEmpty(t, installed(zone, test))
}

func installed(zone string, test func(t *testing.T, in *installation)) func(*testing.T, storetest.DB) {
	return func(t *testing.T, db storetest.DB) {
		t.Helper()
		in := install(t, db, zone)
		defer in.finish()
		test(t, in)
	}
}

// onSQLite runs the test on an installation with SQLite that has no database yet.
func onSQLite(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		installed(zone, test)(t, storetest.EmptySQLite(t))
	})
}

// onPostgres runs the test on an installation with PostgreSQL whose database has
// the schema and no rows, unless only short tests were asked for.
func onPostgres(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	if testing.Short() {
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		installed(zone, test)(t, storetest.Postgres(t))
	})
}

func install(t *testing.T, db storetest.DB, zone string) *installation {
	t.Helper()
	return &installation{
		t: t, program: program, db: db, dns: resolvertest.Start(t, zone),
		data: filepath.Join(t.TempDir(), "data"), secrets: map[string]bool{},
	}
}

// environment returns the settings of the installation, of which the given ones
// of the form NAME=value take the place. Nothing comes from the environment of
// the test.
func (in *installation) environment(settings []string) []string {
	environment := map[string]string{
		"DMARCD_DATABASE":  in.db.DSN,
		"DMARCD_DATA":      in.data,
		"DMARCD_LISTEN":    "127.0.0.1:0",
		"DMARCD_DNS":       in.dns.Addr(),
		"DMARCD_LOG_LEVEL": "debug",
		// The hosts of these tests are on loopback.
		"DMARCD_OUTBOUND_ALLOW": "127.0.0.0/8,::1/128",
		// High enough for any test, and not off: the headers stay.
		"DMARCD_RATE_LIMIT": "1000000",
		// The race detector would hold up the end of every process for a second.
		"GORACE": "atexit_sleep_ms=0",
	}
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		environment[name] = value
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		list = append(list, name+"="+environment[name])
	}
	return list
}

// setZone replaces the zone of the DNS server.
func (in *installation) setZone(zone string) {
	in.t.Helper()
	if err := in.dns.Set(zone); err != nil {
		in.t.Fatal(err)
	}
}

// result is what a command left behind.
type result struct {
	stdout, stderr string
	status         int
}

// command is a run of the binary that ends by itself.
type command struct {
	args     []string
	stdin    string
	settings []string // NAME=value
}

// run runs a command to its end.
func (in *installation) run(c command) result {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	process := exec.CommandContext(ctx, in.program, c.args...)
	process.Env = in.environment(c.settings)
	process.Dir = in.t.TempDir()
	process.Stdin = strings.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	process.Stdout, process.Stderr = &stdout, &stderr
	err := process.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		in.t.Fatalf("dmarcd %s: %v", strings.Join(c.args, " "), err)
	}
	r := result{stdout: stdout.String(), stderr: stderr.String(), status: process.ProcessState.ExitCode()}
	if ctx.Err() != nil {
		in.t.Fatalf("dmarcd %s: still running after %v", strings.Join(c.args, " "), commandLimit)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.outputs = append(in.outputs, r.stderr)
	if !slices.Equal(c.args[:min(2, len(c.args))], []string{"token", "create"}) {
		in.outputs = append(in.outputs, r.stdout)
	}
	return r
}

// do runs a command that must succeed and returns its standard output.
func (in *installation) do(args ...string) string {
	in.t.Helper()
	r := in.run(command{args: args})
	if r.status != 0 {
		in.t.Fatalf("dmarcd %s: got status %d want 0; it said: %s", strings.Join(args, " "), r.status, r.stderr)
	}
	return r.stdout
}

// newToken makes a token for a team with the further flags given.
func (in *installation) newToken(team string, flags ...string) string {
	in.t.Helper()
	token := strings.TrimSpace(in.do(append([]string{"token", "create", "--team", team}, flags...)...))
	in.remember(token)
	return token
}

// remember makes a token one of those that must not be found anywhere.
func (in *installation) remember(token string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(token) >= len("dmd_")+34 {
		in.secrets[token] = true
	}
}
