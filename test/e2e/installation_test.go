package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// installation is a database with a data folder, its DNS server, and the processes
// started on them.
type installation struct {
	t       *testing.T
	program string // path of the binary
	db      storetest.DB
	dns     *resolvertest.Server
	data    string
	// token is the token of the team default, which the first start printed.
	token string
	// mayLogErrors is set by tests that cause errors in the log.
	mayLogErrors bool
	rejected     *errorFixture // nil until newErrorFixture

	mu      sync.Mutex
	servers []*server
	secrets map[string]bool // every token that was sent or created
	outputs []string        // output of commands, except requested tokens
}

// each runs the test on every engine, with a migrated, empty database. At the end it
// stops all processes with SIGTERM and searches for leaked secrets. Races are looked for on
// PostgreSQL, where more happens at the same time.
func each(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, installed(zone, test))
}

// eachEmpty is each with databases without a schema.
func eachEmpty(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Parallel()
	storetest.EachEmpty(t, installed(zone, test))
}

func installed(zone string, test func(t *testing.T, in *installation)) func(*testing.T, storetest.DB) {
	return func(t *testing.T, db storetest.DB) {
		t.Helper()
		in := install(t, db, zone)
		if db.Engine == "postgres" {
			in.program = detecting
		}
		defer in.finish()
		test(t, in)
	}
}

// onSQLite runs the test on SQLite, without a database file.
func onSQLite(t *testing.T, zone string, test func(t *testing.T, in *installation)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		installed(zone, func(t *testing.T, in *installation) {
			t.Helper()
			in.program = detecting
			test(t, in)
		})(t, storetest.EmptySQLite(t))
	})
}

// onPostgres runs the test on PostgreSQL, with a migrated, empty database, unless -short
// is set.
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

// binary returns the binary with the settings of the installation and additional ones of
// the form NAME=value.
func (in *installation) binary(settings []string) daemon.Installation {
	return daemon.Installation{Program: in.program, Settings: []string{
		"DMARCD_DATABASE=" + in.db.DSN,
		"DMARCD_DATA=" + in.data,
		"DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + in.dns.Addr(),
		"DMARCD_LOG_LEVEL=debug",
		// Test servers are on loopback.
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
		// High enough for all tests, but not off, so that the headers are sent.
		"DMARCD_RATE_LIMIT=1000000",
		// Without this, the race detector delays the end of every process by a second.
		"GORACE=atexit_sleep_ms=0",
	}}.With(settings...)
}

// setZone replaces the zone of the DNS server.
func (in *installation) setZone(zone string) {
	in.t.Helper()
	if err := in.dns.Set(zone); err != nil {
		in.t.Fatal(err)
	}
}

// command is a run of the binary that ends by itself.
type command struct {
	args     []string
	stdin    string
	settings []string // NAME=value
}

func (in *installation) run(c command) daemon.Result {
	in.t.Helper()
	r := in.binary(c.settings).Run(in.t, c.stdin, c.args...)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.outputs = append(in.outputs, r.Stderr)
	if !slices.Equal(c.args[:min(2, len(c.args))], []string{"token", "create"}) {
		in.outputs = append(in.outputs, r.Stdout)
	}
	return r
}

func (in *installation) do(args ...string) string {
	in.t.Helper()
	r := in.run(command{args: args})
	if r.Status != 0 {
		in.t.Fatalf("dmarcd %s: got status %d want 0; it said: %s", strings.Join(args, " "), r.Status, r.Stderr)
	}
	return r.Stdout
}

// newToken creates a token for a team, with additional flags.
func (in *installation) newToken(team string, flags ...string) string {
	in.t.Helper()
	token := strings.TrimSpace(in.do(append([]string{"token", "create", "--team", team}, flags...)...))
	in.remember(token)
	return token
}

// remember adds a token to those that must not leak.
func (in *installation) remember(token string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(token) >= len("dmd_")+34 {
		in.secrets[token] = true
	}
}
