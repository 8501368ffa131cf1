package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// Pair is a primary PostgreSQL server with a synchronous standby. Both stop with the test.
type Pair struct {
	// DB has the addresses of both servers; its connections go to the one that accepts
	// writes.
	DB DB
	// Standby is the URL of the standby.
	Standby string

	t          testing.TB
	bin        string // the folder of PostgreSQL's programs
	folder     string
	credential *syscall.Credential // PostgreSQL refuses to run as root
}

// pairTimeout limits each wait, generously for a busy machine.
const pairTimeout = 2 * time.Minute

// StartPair starts a pair of servers with an empty database.
func StartPair(t testing.TB) *Pair {
	t.Helper()
	p := &Pair{t: t, bin: postgresBin(t)}
	primary, standby := daemon.FreePort(), daemon.FreePort()
	var err error
	// A short path that every user can enter.
	if p.folder, err = os.MkdirTemp("/tmp", "dmarcd-pair."); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, server := range []string{"primary", "standby"} {
			if _, err := os.Stat(p.path(server, "postmaster.pid")); err == nil {
				_ = p.command("pg_ctl", "stop", "--pgdata", p.path(server), "--mode=immediate", "--silent").Run() // it may have been killed
			}
		}
		if err := os.RemoveAll(p.folder); err != nil {
			t.Error(err)
		}
	})
	if p.credential = daemon.Unprivileged(t); p.credential != nil {
		musttest.Do(t, os.Chown(p.folder, int(p.credential.Uid), int(p.credential.Gid)))
	}
	p.run("initdb", "--pgdata", p.path("primary"), "--username=dmarcd", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	p.start("primary", primary)
	p.run("pg_basebackup", "--host=127.0.0.1", "--port="+strconv.Itoa(primary), "--username=dmarcd", "--pgdata", p.path("standby"),
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	p.start("standby", standby)

	url := func(hosts, options string) string {
		return "postgres://dmarcd@" + hosts + "/postgres?sslmode=disable" + options
	}
	first, second := fmt.Sprintf("127.0.0.1:%d", primary), fmt.Sprintf("127.0.0.1:%d", standby)
	p.DB = DB{Engine: "postgres", DSN: url(first+","+second, "&target_session_attrs=read-write")}
	p.Standby = url(second, "")
	server := url(first, "")
	for _, statement := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
		musttest.Do(t, run(server, statement))
	}
	p.await("wait for the synchronous standby", server, `SELECT COUNT(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'`)
	return p
}

// KillPrimary kills all processes of the primary, as a crash of its machine would.
func (p *Pair) KillPrimary() {
	p.t.Helper()
	content := musttest.Get(os.ReadFile(p.path("primary", "postmaster.pid")))(p.t)
	line, _, _ := bytes.Cut(content, []byte("\n"))
	postmaster := musttest.Get(strconv.Atoi(string(line)))(p.t)
	children := musttest.Get(os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster)))(p.t)
	for _, field := range append([]string{strconv.Itoa(postmaster)}, strings.Fields(string(children))...) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // a child may have exited
		}
	}
	musttest.Do(p.t, os.Remove(p.path("primary", "postmaster.pid"))) // there is no process left to stop
}

// Promote makes the standby the primary.
func (p *Pair) Promote() {
	p.t.Helper()
	p.run("pg_ctl", "promote", "--pgdata", p.path("standby"), "--wait", "--silent")
	p.await("wait for the promotion of the standby", p.Standby, `SELECT NOT pg_is_in_recovery()`)
}

// path returns a path below the folder of the pair.
func (p *Pair) path(parts ...string) string {
	return filepath.Join(append([]string{p.folder}, parts...)...)
}

func (p *Pair) start(server string, port int) {
	p.t.Helper()
	// Tests kill processes, not the machine: what the processes wrote survives without fsync.
	settings := fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off -c max_wal_senders=4", port)
	p.run("pg_ctl", "start", "--pgdata", p.path(server), "--log", p.path(server+".log"), "--silent", "--wait", "--timeout=120", "--options", settings)
}

func (p *Pair) run(program string, arguments ...string) {
	p.t.Helper()
	if out, err := p.command(program, arguments...).CombinedOutput(); err != nil {
		logs, _ := filepath.Glob(p.path("*.log"))
		for _, name := range logs {
			content, _ := os.ReadFile(name) // the output matters more
			out = append(out, content...)
		}
		p.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func (p *Pair) command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(p.bin, program), arguments...)
	command.Dir = p.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	return command
}

// await waits until a query returns true.
func (p *Pair) await(what, server, query string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), pairTimeout)
	defer cancel()
	db := musttest.Get(sql.Open("pgx", server))(p.t)
	defer func() { _ = db.Close() }() // read-only
	for done := false; !done; {
		err := db.QueryRowContext(ctx, query).Scan(&done)
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: not done after %v; last error: %v", what, pairTimeout, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// postgresBin returns the folder of PostgreSQL's programs.
func postgresBin(t testing.TB) string {
	t.Helper()
	var problems strings.Builder
	find := exec.Command(filepath.Join(musttest.Get(moduleRoot())(t), "scripts", "find-postgres.sh"))
	find.Stderr = &problems
	out, err := find.Output()
	if err != nil {
		t.Fatalf("find PostgreSQL: %v\n%s", err, problems.String())
	}
	return strings.TrimSpace(string(out))
}
