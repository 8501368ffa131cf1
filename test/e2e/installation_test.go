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
	// mayLogErrors is set by tests in which the log may contain errors.
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

// binary returns the binary with the settings of the installation and the given ones of
// the form NAME=value.
func (in *installation) binary(settings []string) daemon.Installation {
	return daemon.Installation{Program: in.program, Settings: []string{
		"DMARCD_DATABASE=" + in.db.DSN,
		"DMARCD_DATA=" + in.data,
		"DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=" + in.dns.Addr(),
		"DMARCD_LOG_LEVEL=debug",
		// The hosts of these tests are on loopback.
		"DMARCD_OUTBOUND_ALLOW=127.0.0.0/8,::1/128",
		// High enough for any test, and not off: the headers stay.
		"DMARCD_RATE_LIMIT=1000000",
		// The race detector would hold up the end of every process for a second.
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

// run runs a command to its end.
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

// do runs a command that must succeed and returns its standard output.
func (in *installation) do(args ...string) string {
	in.t.Helper()
	r := in.run(command{args: args})
	if r.Status != 0 {
		in.t.Fatalf("dmarcd %s: got status %d want 0; it said: %s", strings.Join(args, " "), r.Status, r.Stderr)
	}
	return r.Stdout
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
