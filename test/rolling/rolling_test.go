// Package rolling upgrades an installation on PostgreSQL under load, one replica after the
// other, from an old binary to a new one: a request must get no other answer than documented,
// and no acknowledged report may be missing. The test stands in for the load balancer.
// scripts/test-rolling.sh builds the binaries.
package rolling_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// The environment variables that name the binaries.
const (
	oldVariable = "DMARCD_TEST_OLD"
	newVariable = "DMARCD_TEST_NEW"
)

// How long each phase lasts, and how many clients there are.
const (
	phase   = 4 * time.Second
	clients = 4
)

func TestRolling(t *testing.T) {
	t.Parallel()
	before, after := os.Getenv(oldVariable), os.Getenv(newVariable)
	if before == "" || after == "" {
		t.Logf("%s and %s are not set: make test-rolling builds the binaries, and sets them", oldVariable, newVariable)
		return
	}
	c := &cluster{t: t, db: storetest.EmptyPostgres(t)}
	l := &load{t: t, cluster: c, report: musttest.Get(os.ReadFile("../../aggregate/testdata/plain-rfc9990.xml"))(t)}
	replicas := []*replica{c.start(before), c.start(before)}
	old := c.installation(before)
	l.token = old.Do(t, "token", "create", "--team", "default")
	old.Do(t, "domain", "add", "--team", "default", "example.com")
	known, _ := c.versions()

	l.begin()
	defer l.end()
	l.phase("two old replicas")
	for i := range replicas {
		began := time.Now()
		c.start(after)
		l.phase(fmt.Sprintf("new replica %d of 2, which took %d ms to start", i+1, time.Since(began).Milliseconds()))
		c.stop(replicas[i])
		l.phase("an old replica has stopped")
		if i == 0 {
			replicas[1] = c.restart(replicas[1], before, known)
			l.phase("the other old replica")
		}
	}
	l.end()
	l.verify(after)
}

// A cluster is a set of replicas on one database.
type cluster struct {
	t  *testing.T
	db storetest.DB

	mu       sync.Mutex
	serving  []*replica
	position int
}

type replica struct {
	*daemon.Daemon
	busy sync.WaitGroup
}

func (c *cluster) installation(binary string) daemon.Installation {
	return daemon.Installation{Program: binary, Settings: []string{
		"DMARCD_DATABASE=" + c.db.DSN, "DMARCD_DATA=" + c.t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0",
		"DMARCD_DNS=127.0.0.1:1", "DMARCD_RATE_LIMIT=0", "DMARCD_SCHEDULE_RATE=0",
	}}
}

// start runs a replica and puts it into rotation when it is ready.
func (c *cluster) start(binary string) *replica {
	c.t.Helper()
	r := &replica{Daemon: c.installation(binary).Serve(c.t)}
	daemon.Eventually(c.t, daemon.StartLimit, binary+" is ready", func() bool {
		status, _, _ := send(http.MethodGet, "http://"+r.HTTP+"/readyz", "", nil)
		return status == http.StatusOK
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = append(c.serving, r)
	return r
}

// stop takes a replica out of rotation, waits for its requests, and stops it.
func (c *cluster) stop(r *replica) {
	c.t.Helper()
	c.mu.Lock()
	c.serving = slices.DeleteFunc(c.serving, func(other *replica) bool { return other == r })
	c.mu.Unlock()
	r.busy.Wait()
	r.Stop()
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

// versions returns the version of the schema, and the oldest one whose programs can use it.
func (c *cluster) versions() (version, oldest int64) {
	c.t.Helper()
	db := c.db.SQL(c.t)
	musttest.Do(c.t, db.QueryRowContext(c.t.Context(), "SELECT MAX(version_id) FROM schema_migrations").Scan(&version))
	musttest.Do(c.t, db.QueryRowContext(c.t.Context(), "SELECT oldest FROM schema_compatibility").Scan(&oldest))
	return version, oldest
}

// restart stops a replica of the old program, which knows the schema up to a version, and starts it
// again on the new schema, if that program can do so.
func (c *cluster) restart(old *replica, before string, known int64) *replica {
	c.t.Helper()
	version, oldest := c.versions()
	if known < oldest {
		c.t.Logf("the old program (schema %d) cannot be restarted on schema %d, which is for %d and later", known, version, oldest)
		return old
	}
	c.t.Logf("the old program (schema %d) starts on schema %d, which is for %d and later", known, version, oldest)
	started := c.start(before)
	c.stop(old)
	return started
}

// A load sends requests as clients do.
type load struct {
	t       *testing.T
	cluster *cluster
	token   string
	report  []byte

	group    sync.WaitGroup
	stopping atomic.Bool
	serial   atomic.Int64
	requests atomic.Int64
	rejected atomic.Int64 // 503

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
				l.expect(http.MethodGet, "/insights/senders?domain=example.com", nil, http.StatusOK)
			}
		})
	}
}

func (l *load) end() {
	l.stopping.Store(true)
	l.group.Wait()
}

var reportID = regexp.MustCompile(`<report_id>[^<]*</report_id>`)

// numbered returns a report of three messages.
func (l *load) numbered(n int64) []byte {
	return reportID.ReplaceAll(l.report, fmt.Appendf(nil, "<report_id>rolling-%d</report_id>", n))
}

func (l *load) upload(n int64) {
	if !l.expect(http.MethodPost, "/reports", l.numbered(n), http.StatusCreated) {
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
	status, text, retry := send(method, "http://"+r.HTTP+"/api"+path, l.token, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowed = max(l.slowed, time.Since(began))
	if slices.Contains(want, status) {
		return true
	}
	if status == http.StatusServiceUnavailable && retry {
		l.rejected.Add(1)
		return false
	}
	l.wrong = append(l.wrong, fmt.Sprintf("%s %s: %d %s", method, path, status, text))
	return false
}

// send returns status 0 and the error as text if there is no answer.
func send(method, url, token string, body []byte) (status int, text string, retry bool) {
	request, err := http.NewRequest(method, url, strings.NewReader(string(body)))
	if err != nil {
		return 0, err.Error(), false
	}
	request.Header.Set("Authorization", "Bearer "+token)
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

// phase lets the load run for a while and logs what happened since the last phase.
func (l *load) phase(name string) {
	<-time.After(phase)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Logf("%s: %d requests, %d answered with 503, %d wrong, slowest %d ms",
		name, l.requests.Swap(0), l.rejected.Swap(0), len(l.wrong), l.slowed.Milliseconds())
	l.slowed = 0
}

// verify sends again what was refused, and checks that every report counts once.
func (l *load) verify(binary string) {
	l.t.Helper()
	for _, n := range l.again {
		l.expect(http.MethodPost, "/reports", l.numbered(n), http.StatusCreated, http.StatusOK)
	}
	want := fmt.Sprintf(`{"total":%d,`, 3*l.serial.Load())
	r, done := l.cluster.take()
	defer done()
	if _, text, _ := send(http.MethodGet, "http://"+r.HTTP+"/api/reports/example.com", l.token, nil); !strings.HasPrefix(text, want) {
		l.t.Errorf("the summary: got %s want %s", text, want)
	}
	// There is no DNS server here, so that the doctor always finds that.
	doctor := l.cluster.installation(binary).Run(l.t, "", "doctor")
	findings := doctor.Stdout + doctor.Stderr
	for line := range strings.Lines(findings) {
		if strings.HasPrefix(line, "bad ") && !strings.Contains(line, "DNS:") {
			l.t.Error(line)
		}
	}
	if !strings.Contains(findings, "ok      database:") {
		l.t.Errorf("the doctor did not check the database: %s", findings)
	}
	if len(l.wrong) > 0 {
		l.t.Errorf("got %d wrong answers, such as\n%s", len(l.wrong), strings.Join(l.wrong[:min(len(l.wrong), 5)], "\n"))
	}
	l.t.Logf("%d reports count", l.serial.Load())
}
