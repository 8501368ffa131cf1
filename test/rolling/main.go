// Command rolling upgrades an installation on PostgreSQL under load, one replica after the
// other, from an old binary to a new one: it fails if a request gets another answer than
// documented, or if an acknowledged report is missing. It stands in for the load balancer.
// scripts/test-rolling.sh builds the binaries.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// How long each phase lasts, and how many clients there are.
const (
	phase   = 4 * time.Second
	clients = 4
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: rolling OLD NEW, the paths of two binaries; DMARCD_TEST_POSTGRES is the URL of a server")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1], os.Args[2])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rolling:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, before, after string) (err error) {
	folder, err := os.MkdirTemp("", "rolling")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	dsn, drop, err := createDatabase(ctx, os.Getenv("DMARCD_TEST_POSTGRES"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()

	c := &cluster{folder: folder, dsn: dsn}
	defer c.kill()
	l := &load{cluster: c}
	if l.report, err = os.ReadFile("aggregate/testdata/plain-rfc9990.xml"); err != nil {
		return err
	}
	var replicas [2]*replica
	for i := range replicas {
		if replicas[i], err = c.start(ctx, before); err != nil {
			return err
		}
	}
	if l.token, err = c.command(ctx, before, "token", "create", "--team", "default"); err != nil {
		return err
	}
	if _, err := c.command(ctx, before, "domain", "add", "--team", "default", "example.com"); err != nil {
		return err
	}

	known, _, err := c.versions(ctx)
	if err != nil {
		return err
	}

	l.begin()
	defer l.end()
	l.phase(ctx, "two old replicas")
	for i := range replicas {
		began := time.Now()
		if _, err := c.start(ctx, after); err != nil {
			return err
		}
		l.phase(ctx, fmt.Sprintf("new replica %d of 2, which took %d ms to start", i+1, time.Since(began).Milliseconds()))
		if err := c.stop(replicas[i]); err != nil {
			return err
		}
		l.phase(ctx, "an old replica has stopped")
		if i > 0 {
			continue
		}
		if replicas[1], err = c.restart(ctx, replicas[1], before, known); err != nil {
			return err
		}
		l.phase(ctx, "the other old replica")
	}
	l.end()
	return l.verify(ctx, after)
}

// createDatabase returns the URL of a new database, and the function that drops it.
func createDatabase(ctx context.Context, server string) (dsn string, drop func() error, err error) {
	db, err := sql.Open("pgx", server)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("dmarcd_rolling_%d", time.Now().UnixNano())
	if _, err := db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	dsn = regexp.MustCompile(`^(postgres(?:ql)?://[^/]*/)[^?]*`).ReplaceAllString(server, "${1}"+name)
	return dsn, func() error {
		_, err := db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		return errors.Join(err, db.Close())
	}, nil
}

// versions returns the version of the schema, and the oldest one whose programs can use it, 0
// if it does not say.
func (c *cluster) versions(ctx context.Context) (version, oldest int64, err error) {
	db, err := sql.Open("pgx", c.dsn)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, "SELECT MAX(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return 0, 0, err
	}
	// The schema of the old program may not have the table.
	_ = db.QueryRowContext(ctx, "SELECT oldest FROM schema_compatibility").Scan(&oldest)
	return version, oldest, nil
}

// firstCompatible is the version of the schema whose programs are the first to read
// schema_compatibility.
const firstCompatible = 12

// restart stops a replica of the old program, which knows the schema up to a version, and starts it
// again on the new schema, if that program can do so.
func (c *cluster) restart(ctx context.Context, old *replica, before string, known int64) (*replica, error) {
	version, oldest, err := c.versions(ctx)
	if err != nil {
		return nil, err
	}
	if known < firstCompatible || known < oldest {
		fmt.Printf("rolling: the old program (schema %d) cannot be restarted on schema %d, which is for %d and later\n", known, version, max(oldest, firstCompatible))
		return old, nil
	}
	started, err := c.start(ctx, before)
	if err != nil {
		return nil, fmt.Errorf("start the old program (schema %d) on schema %d, which is for %d and later: %w", known, version, oldest, err)
	}
	fmt.Printf("rolling: the old program (schema %d) started on schema %d\n", known, version)
	return started, c.stop(old)
}

// A cluster is a set of replicas on one database.
type cluster struct {
	folder, dsn string

	mu       sync.Mutex
	serving  []*replica
	all      []*replica
	position int
}

type replica struct {
	process *exec.Cmd
	url     string
	log     string
	busy    sync.WaitGroup
}

var listening = regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)

// environ are the settings of all replicas and commands.
func (c *cluster) environ(data string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "DMARCD_DATABASE=" + c.dsn, "DMARCD_DATA=" + data, "DMARCD_LISTEN=127.0.0.1:0", "DMARCD_LOG_FORMAT=json",
		"DMARCD_DNS=127.0.0.1:1", "DMARCD_RATE_LIMIT=0", "DMARCD_SCHEDULE_RATE=0", "DMARCD_QUOTA_REPORTS=0",
	}
}

// start runs a replica and puts it into rotation when it is ready.
func (c *cluster) start(ctx context.Context, binary string) (*replica, error) {
	data := filepath.Join(c.folder, fmt.Sprint(len(c.all)))
	r := &replica{process: exec.CommandContext(ctx, binary, "serve"), log: data + ".log"} //nolint:gosec // the binary under test
	r.process.Env = c.environ(data)
	log, err := os.Create(r.log)
	if err != nil {
		return nil, err
	}
	r.process.Stdout, r.process.Stderr = log, log
	if err := errors.Join(r.process.Start(), log.Close()); err != nil {
		return nil, err
	}
	c.all = append(c.all, r)
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit) && ctx.Err() == nil; <-time.After(20 * time.Millisecond) {
		text, err := os.ReadFile(r.log)
		if err != nil {
			return nil, err
		}
		match := listening.FindSubmatch(text)
		if match == nil {
			continue
		}
		r.url = "http://" + string(match[1])
		response, err := http.Get(r.url + "/readyz") //nolint:noctx // loopback
		if err != nil {
			continue
		}
		_ = response.Body.Close() // read-only
		if response.StatusCode == http.StatusOK {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.serving = append(c.serving, r)
			return r, nil
		}
	}
	text, _ := os.ReadFile(r.log) // for the message
	return nil, fmt.Errorf("%s is not ready: %s", binary, text)
}

// stop takes a replica out of rotation, waits for its requests, and stops it.
func (c *cluster) stop(r *replica) error {
	c.mu.Lock()
	for i, other := range c.serving {
		if other == r {
			c.serving = append(c.serving[:i:i], c.serving[i+1:]...)
			break
		}
	}
	c.mu.Unlock()
	r.busy.Wait()
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := r.process.Wait(); err != nil {
		return fmt.Errorf("a replica stopped: %w", err)
	}
	return nil
}

// kill ends the replicas that still run.
func (c *cluster) kill() {
	for _, r := range c.all {
		_ = r.process.Process.Kill() // it may have ended
		_ = r.process.Wait()
	}
}

// take returns the next replica in rotation; done returns it.
func (c *cluster) take() (r *replica, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.position++
	r = c.serving[c.position%len(c.serving)]
	r.busy.Add(1)
	return r, r.busy.Done
}

// command runs a command on the database and returns its output.
func (c *cluster) command(ctx context.Context, binary string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the binary under test
	command.Env = c.environ(filepath.Join(c.folder, "cli"))
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// A load sends requests as clients do.
type load struct {
	cluster *cluster
	token   string
	report  []byte

	group    sync.WaitGroup
	stopping atomic.Bool
	serial   atomic.Int64
	requests atomic.Int64
	refused  atomic.Int64 // 503

	mu     sync.Mutex
	wrong  []string
	again  []int64 // reports that were answered with 503
	slowed time.Duration
}

func (l *load) begin() {
	for range clients {
		l.group.Go(func() {
			for !l.stopping.Load() {
				l.upload(l.serial.Add(1))
				l.expect(http.MethodGet, "/domains/example.com", nil, http.StatusOK)
				l.expect(http.MethodGet, "/reports/example.com", nil, http.StatusOK)
				l.expect(http.MethodGet, "/insights/reports?domain=example.com&limit=5", nil, http.StatusOK)
				l.expect(http.MethodGet, "/insights/sources?domain=example.com", nil, http.StatusOK)
			}
		})
	}
}

func (l *load) end() {
	l.stopping.Store(true)
	l.group.Wait()
}

var reportID = regexp.MustCompile(`<report_id>[^<]*</report_id>`)

// upload sends a report of three messages.
func (l *load) upload(n int64) {
	body := reportID.ReplaceAll(l.report, fmt.Appendf(nil, "<report_id>rolling-%d</report_id>", n))
	if !l.expect(http.MethodPost, "/reports", body, http.StatusCreated) {
		l.mu.Lock()
		l.again = append(l.again, n)
		l.mu.Unlock()
	}
}

// expect sends a request and notes an answer other than want, and than a 503 with Retry-After,
// for which it returns false.
func (l *load) expect(method, path string, body []byte, want ...int) bool {
	r, done := l.cluster.take()
	defer done()
	l.requests.Add(1)
	began := time.Now()
	status, text, retry := l.send(method, r.url+"/api"+path, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowed = max(l.slowed, time.Since(began))
	for _, w := range want {
		if status == w {
			return true
		}
	}
	if status == http.StatusServiceUnavailable && retry {
		l.refused.Add(1)
		return false
	}
	l.wrong = append(l.wrong, fmt.Sprintf("%s %s: %d %s", method, path, status, text))
	return false
}

// send returns status 0 and the error as text if there is no answer.
func (l *load) send(method, url string, body []byte) (status int, text string, retry bool) {
	request, err := http.NewRequest(method, url, strings.NewReader(string(body))) //nolint:noctx // has a timeout
	if err != nil {
		return 0, err.Error(), false
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return 0, err.Error(), false
	}
	defer func() { _ = response.Body.Close() }() // read-only
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error(), false
	}
	return response.StatusCode, string(answer), response.Header.Get("Retry-After") != ""
}

// phase lets the load run for a while and prints what happened since the last phase.
func (l *load) phase(ctx context.Context, name string) {
	select {
	case <-ctx.Done():
	case <-time.After(phase):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Printf("rolling: %s: %d requests, %d answered with 503, %d wrong, slowest %d ms\n",
		name, l.requests.Swap(0), l.refused.Swap(0), len(l.wrong), l.slowed.Milliseconds())
	l.slowed = 0
}

// verify sends again what was refused, and checks that every report counts once.
func (l *load) verify(ctx context.Context, binary string) error {
	for _, n := range l.again {
		body := reportID.ReplaceAll(l.report, fmt.Appendf(nil, "<report_id>rolling-%d</report_id>", n))
		l.expect(http.MethodPost, "/reports", body, http.StatusCreated, http.StatusOK)
	}
	want := fmt.Sprintf(`{"total":%d,`, 3*l.serial.Load())
	r, done := l.cluster.take()
	defer done()
	if _, text, _ := l.send(http.MethodGet, r.url+"/api/reports/example.com", nil); !strings.HasPrefix(text, want) {
		l.wrong = append(l.wrong, fmt.Sprintf("the summary: got %s want %s", text, want))
	}
	// There is no DNS server here, so that the doctor always finds that.
	findings, _ := l.cluster.command(ctx, binary, "doctor")
	for line := range strings.Lines(findings) {
		if strings.HasPrefix(line, "bad ") && !strings.Contains(line, "DNS:") {
			l.wrong = append(l.wrong, line)
		}
	}
	if !strings.Contains(findings, "ok      database:") {
		l.wrong = append(l.wrong, "the doctor did not check the database: "+findings)
	}
	if len(l.wrong) > 0 {
		return fmt.Errorf("%d wrong answers, such as\n%s", len(l.wrong), strings.Join(l.wrong[:min(len(l.wrong), 5)], "\n"))
	}
	fmt.Printf("rolling: good, %d reports count\n", l.serial.Load())
	return nil
}
