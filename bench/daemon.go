package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/auth"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/store"
	harness "github.com/dmarcd/dmarcd/test/daemon"
)

// daemon is a running dmarcd with its own database and DNS server.
type daemon struct {
	address string // host:port
	mail    string // the same for SMTP
	token   string
	store   *store.Store
	team    *store.Team
	dns     *resolvertest.Server
	process *exec.Cmd
	drop    func() error
	folder  string
	dsn     string
}

// startDaemon starts the binary on an empty database, with additional settings. The access log
// is enabled for all requests.
func startDaemon(ctx context.Context, s settings, e engine, env ...string) *daemon {
	d := &daemon{token: auth.NewToken()}
	d.dsn, d.drop = e.create(ctx)
	d.folder = get(os.MkdirTemp("", "dmarcd-bench-data-"))
	d.dns = get(resolvertest.Listen("127.0.0.1:0"))
	d.process = exec.CommandContext(ctx, s.binary, "serve") //nolint:gosec // our own program
	d.process.Env = []string{
		"DMARCD_DATABASE=" + d.dsn, "DMARCD_DATA=" + d.folder, "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_DNS=" + d.dns.Addr(),
		"DMARCD_TOKEN=" + d.token, "DMARCD_RATE_LIMIT=0", "DMARCD_LOG_LEVEL=debug",
		"DMARCD_SMTP_LISTEN=127.0.0.1:0", "DMARCD_REPORT_DOMAIN=" + benchReportDomain, "DMARCD_SMTP_RATE=0",
	}
	d.process.Env = append(d.process.Env, env...) // the last one counts
	d.start(true)
	d.open(ctx)
	return d
}

// startDemo starts the binary with the sample team.
func startDemo(ctx context.Context, s settings) *daemon {
	d := &daemon{folder: get(os.MkdirTemp("", "dmarcd-bench-data-"))}
	d.process = exec.CommandContext(ctx, s.binary, "demo") //nolint:gosec // our own program
	d.process.Env = []string{"TMPDIR=" + d.folder, "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_RATE_LIMIT=0", "DMARCD_LOG_LEVEL=debug"}
	d.start(false)
	d.dsn = get(filepath.Glob(filepath.Join(d.folder, "*", "demo.db")))[0]
	d.open(ctx)
	return d
}

// start starts the process and waits until it serves HTTP, and SMTP if mail is set.
func (d *daemon) start(mail bool) {
	log := get(d.process.StderrPipe())
	must(d.process.Start())
	if err := d.awaitAddresses(log, mail); err != nil {
		must(errors.Join(err, d.end()))
	}
}

// whileStopped stops the process, calls f, and starts the process again.
func (d *daemon) whileStopped(ctx context.Context, f func()) {
	path, env := d.process.Path, d.process.Env
	must(errors.Join(d.process.Process.Signal(syscall.SIGTERM), d.process.Wait()))
	d.process, d.address, d.mail = nil, "", ""
	f()
	d.process = exec.CommandContext(ctx, path, "serve") //nolint:gosec // our own program
	d.process.Env = env
	d.start(true)
}

// open opens the database of the daemon from this process.
func (d *daemon) open(ctx context.Context) {
	d.store = get(store.Open(ctx, d.dsn, store.Options{}))
	d.team = d.store.Team(get(d.store.TeamByName(ctx, dmarcd.DefaultTeam)).ID)
}

// benchReportDomain is the domain of the reporting addresses.
const benchReportDomain = "reports.bench.example"

// awaitAddresses reads the log until it contains the listener addresses, and discards the rest
// in the background.
func (d *daemon) awaitAddresses(log io.Reader, mail bool) error {
	lines, last := bufio.NewReader(log), ""
	for d.address == "" || mail && d.mail == "" {
		line, err := lines.ReadBytes('\n')
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil {
			switch entry.Msg {
			case "serving":
				d.address = entry.Address
			case "receiving mail":
				d.mail = entry.Address
			}
		}
		if err != nil {
			return fmt.Errorf("the daemon ended before it served: %s", cmp.Or(string(line), last))
		}
		last = string(line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the process
	return nil
}

// memory returns the current and the peak resident memory of the process, in bytes.
func (d *daemon) memory() (now, peak int64) {
	status := get(os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.process.Process.Pid), "status")))
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64) // other lines hold words
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes << 10
		case "VmHWM:":
			peak = kilobytes << 10
		}
	}
	return now, peak
}

func (d *daemon) close() { must(d.end()) }

func (d *daemon) end() error {
	var errs []error
	if d.process != nil && d.process.Process != nil {
		errs = append(errs, d.process.Process.Signal(syscall.SIGTERM), d.process.Wait())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.dns != nil {
		d.dns.Close()
	}
	if d.drop != nil {
		errs = append(errs, d.drop())
	}
	return errors.Join(append(errs, os.RemoveAll(d.folder))...)
}

// rest waits until the daemon has finished its jobs and what clients left: until it is idle for
// that time. Jobs pause for up to a second between their steps, and start every minute.
func (d *daemon) rest(idleFor time.Duration) {
	const span, limit = 300 * time.Millisecond, 15 * time.Minute
	pause := time.NewTicker(span)
	defer pause.Stop()
	taken := func() time.Duration { return get(harness.ProcessorTime(d.process.Process.Pid)) }
	began := time.Now()
	since, before := began, taken()
	for time.Since(began) < limit {
		<-pause.C
		switch now := taken(); {
		case now-before >= idleFor/10: // a chore every minute is no work
			since, before = time.Now(), now
		case time.Since(since) >= idleFor:
			return
		}
	}
	must(fmt.Errorf("the daemon is still at work after %v", limit))
}

// engine creates empty databases.
type engine interface {
	name() string
	create(ctx context.Context) (dsn string, drop func() error)
}

type sqliteEngine struct{ folder string }

func (sqliteEngine) name() string { return "SQLite" }

func (e sqliteEngine) create(context.Context) (string, func() error) {
	folder := get(os.MkdirTemp(e.folder, ""))
	return filepath.Join(folder, "dmarcd.db"), func() error { return os.RemoveAll(folder) }
}

type postgresEngine struct{}

func (postgresEngine) name() string { return "PostgreSQL" }

func (postgresEngine) create(ctx context.Context) (string, func() error) {
	server := os.Getenv("DMARCD_TEST_POSTGRES")
	if server == "" {
		must(errors.New("DMARCD_TEST_POSTGRES names no server; `make bench` starts one"))
	}
	dsn := get(url.Parse(server))
	name := "dmarcd_bench_" + strings.ToLower(rand.Text())
	administer := func(statement string) error {
		db := get(sql.Open("pgx", server))
		_, err := db.ExecContext(ctx, statement)
		return errors.Join(err, db.Close())
	}
	must(administer(`CREATE DATABASE ` + name))
	dsn.Path = "/" + name
	return dsn.String(), func() error { return administer(`DROP DATABASE ` + name + ` WITH (FORCE)`) }
}

// openSQL opens a database for the benchmark's own statements.
func openSQL(dsn string) *sql.DB {
	if store.IsPostgres(dsn) {
		return get(sql.Open("pgx", dsn))
	}
	return get(sql.Open("sqlite", dsn+"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)"))
}
