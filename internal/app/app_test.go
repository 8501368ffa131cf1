package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/app"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/internal/secret"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
	"github.com/dmarcd/dmarcd/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// syncBuffer is a buffer that a test may read while others write.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// daemon is an App that runs in the test's process.
type daemon struct {
	url    string
	listen string // host and port
	out    string
	log    *syncBuffer
	stop   func() error
}

func start(t testing.TB, db storetest.DB, settings ...string) daemon {
	t.Helper()
	return startWith(t, db, app.Options{}, settings...)
}

// startWith is start with other options.
func startWith(t testing.TB, db storetest.DB, options app.Options, settings ...string) daemon {
	t.Helper()
	// The first of two settings with one name counts.
	environ := append(slices.Clone(settings), "DMARCD_DATABASE="+db.DSN, "DMARCD_DATA="+t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0")
	effective := musttest.Get(config.Load(config.Input{Environ: environ}))(t)
	d := daemon{log: &syncBuffer{}}
	var out bytes.Buffer
	traces, _, err := trace.FromEnvironment(settings)
	musttest.Do(t, err)
	options.Log, options.Out, options.Version, options.Trace = slog.New(slog.NewJSONHandler(d.log, nil)), &out, "test", traces
	a := musttest.Get(app.New(t.Context(), effective.Config, options))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	d.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	d.url, d.listen, d.out = a.Config().BaseURL, a.Config().Listen, out.String()
	return d
}

var tokenForm = regexp.MustCompile(`dmd_[0-9A-Za-z]{40}`)

// get asks with a token and returns the status and the body.
func get(t testing.TB, url, token string) (int, string) {
	t.Helper()
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	musttest.Do(t, err)
	defer func() { _ = response.Body.Close() }()
	body := musttest.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(body)
}

func TestRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, db storetest.DB) {
		server := resolvertest.Start(t, `_dmarc.example.com. TXT "v=DMARC1; p=reject"`)
		d := start(t, db, "DMARCD_DNS="+server.Addr())
		token := tokenForm.FindString(d.out)
		if status, body := get(t, d.url+"/domains", token); status != http.StatusOK || body != "[]\n" {
			t.Errorf("got %d %q", status, body)
		}
		if err := d.stop(); err != nil {
			t.Error(err)
		}
		// TestMain looks for goroutines.
		if strings.Contains(d.log.String(), token) {
			t.Error("the token is in the log")
		}
	})
}

func TestFirstStartPrintsTheTokenOnce(t *testing.T) {
	t.Parallel()
	db := storetest.EmptySQLite(t)
	first := start(t, db)
	if n := len(tokenForm.FindAllString(first.out, -1)); n != 1 {
		t.Errorf("the first start tells %d tokens, want 1:\n%s", n, first.out)
	}
	musttest.Do(t, first.stop())
	second := start(t, db)
	if tokenForm.MatchString(second.out) || !strings.Contains(second.out, second.url) {
		t.Errorf("the second start says:\n%s", second.out)
	}
}

// TestMissingKeyIsLogged starts with the database of another data folder, whose key is elsewhere.
func TestMissingKeyIsLogged(t *testing.T) {
	t.Parallel()
	db := storetest.EmptySQLite(t)
	for n, want := range []bool{false, true} {
		d := start(t, db)
		musttest.Do(t, d.stop())
		if got := strings.Contains(d.log.String(), "secret key missing"); got != want {
			t.Errorf("start %d: got a missing key %t, want %t", n+1, got, want)
		}
	}
}

func TestConfiguredToken(t *testing.T) {
	t.Parallel()
	const token = "dmd_000000000000000000000000000000000042AzL5" // a checksum that is wrong
	effective := musttest.Get(config.Load(config.Input{Environ: []string{
		"DMARCD_TOKEN=" + token, "DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=127.0.0.1:0",
	}}))(t)
	_, err := app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "DMARCD_TOKEN") || strings.Contains(err.Error(), token) {
		t.Errorf("got %v, want an error that names the setting and not the token", err)
	}
}

func TestListenFailureStatesWhatToDo(t *testing.T) {
	t.Parallel()
	first := start(t, storetest.SQLite(t))
	address := strings.TrimSuffix(strings.TrimPrefix(first.url, "http://"), "/api")
	effective := musttest.Get(config.Load(config.Input{Environ: []string{"DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=" + address}}))(t)
	_, err := app.New(t.Context(), effective.Config, app.Options{Log: slog.New(slog.DiscardHandler), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "DMARCD_LISTEN") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

// closedPipe is an output that is no longer read.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFailedStartGivesTheAddressBack(t *testing.T) {
	t.Parallel()
	free := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	musttest.Do(t, free.Close())
	effective := musttest.Get(config.Load(config.Input{Environ: []string{"DMARCD_DATA=" + t.TempDir(), "DMARCD_LISTEN=" + address}}))(t)
	options := app.Options{Log: slog.New(slog.DiscardHandler), Out: closedPipe{}}
	if _, err := app.New(t.Context(), effective.Config, options); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("got %v, want that the token could not be told", err)
	}
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("the address is still taken: %v", err)
	}
	_ = again.Close() // it served its purpose
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db storetest.DB) {
		server := resolvertest.Start(t, "com. NS a.example.\nreports.example. MX 10 mx.example.")
		settings := []string{"DMARCD_DNS=" + server.Addr(), "DMARCD_REPORT_DOMAIN=reports.example", "DMARCD_SECRET_KEY=" + secret.NewKey()}
		start(t, db, settings...)
		data := networksOf(t, time.Now())
		musttest.Do(t, os.Chmod(data, 0o700))
		environ := append([]string{"DMARCD_DATABASE=" + db.DSN, "DMARCD_DATA=" + data}, settings...)
		effective := musttest.Get(config.Load(config.Input{Environ: environ}))(t)
		states := func(environ []string) map[string]app.DiagnosisState {
			worst := map[string]app.DiagnosisState{}
			for _, d := range app.Diagnose(t.Context(), effective.Config, environ) {
				if worst[d.Part] == "" || worst[d.Part] == app.Healthy {
					worst[d.Part] = d.State
				}
				if (d.Fix == "") != (d.State == app.Healthy) {
					t.Errorf("%+v: want a fix for every problem and only then", d)
				}
			}
			return worst
		}
		for part, state := range states(environ) {
			if state != app.Healthy {
				t.Errorf("a sound installation: %s is %s", part, state)
			}
		}
		server.SetFault("*", resolvertest.ServFail)
		got := states([]string{"DMARCD_LISTN=x"})
		for part, want := range map[string]app.DiagnosisState{"configuration": app.Advised, "DNS": app.Sick, "report domain": app.Unseen, "database": app.Healthy} {
			if got[part] != want {
				t.Errorf("a sick installation: %s is %s, want %s", part, got[part], want)
			}
		}
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `INSERT INTO team_days (team_id, day, compliant, non_compliant, quarantined, rejected, dkim, spf, unverified)
			SELECT id, 1, 2, 3, 0, 0, 0, 0, 0 FROM teams`))(t)
		if got := states(environ)["database"]; got != app.Sick {
			t.Errorf("wrong sums: the database is %s", got)
		}
		musttest.Get(db.SQL(t).ExecContext(t.Context(), `UPDATE audit SET actor = 'another'`))(t)
		if got := states(environ)["audit log"]; got != app.Sick {
			t.Errorf("a changed entry: the audit log is %s", got)
		}
	})
}

// TestDiagnoseIntake wants to know when no reports can arrive.
func TestDiagnoseIntake(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	musttest.Do(t, start(t, db).stop())
	cfg := config.Config{Database: db.DSN, Data: t.TempDir()}
	advised := func() bool {
		return slices.ContainsFunc(app.Diagnose(t.Context(), cfg, nil), func(d app.Diagnosis) bool { return d.Part == "intake" && d.State == app.Advised })
	}
	if !advised() {
		t.Error("without a report domain, a folder and a mailbox: got no advice")
	}
	cfg.Intake.Folder = t.TempDir()
	if advised() {
		t.Error("with a folder: got advice")
	}
	cfg.Intake.Folder = ""
	opened := db.Open(t, store.Options{})
	team := opened.Team(musttest.Get(opened.TeamByName(t.Context(), dmarcd.DefaultTeam))(t).ID)
	mailbox := dmarcd.Mailbox{Host: "imap.example", Port: 993, Security: dmarcd.SecurityTLS, Username: "reports", Method: dmarcd.LoginPassword, Folder: "INBOX", After: dmarcd.AfterKeep}
	musttest.Get(team.AddMailbox(t.Context(), mailbox, func(dmarcd.Mailbox) ([]byte, error) { return []byte("sealed"), nil }))(t)
	if advised() {
		t.Error("with a mailbox: got advice")
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	d := start(t, storetest.SQLite(t))
	root := strings.TrimSuffix(d.url, "/api")
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusOK,
		"/":        http.StatusOK, // leads to the page for signing in
		"/nothing": http.StatusNotFound, "/apix": http.StatusNotFound, "/api": http.StatusUnauthorized,
	} {
		if got, body := get(t, root+path, ""); got != want {
			t.Errorf("%s: got %d %s, want %d", path, got, body, want)
		}
	}
	if _, metrics := get(t, root+"/metrics", ""); !strings.Contains(metrics, `dmarcd_http_requests_total{route="/healthz",status="200"} 1`) ||
		!strings.Contains(metrics, "dmarcd_database_connections") {
		t.Error("the metrics do not count requests or connections")
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestStopIsQuick is a safety bound: SIGTERM is answered within 10 s.
func TestStopIsQuick(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	server := resolvertest.Start(t, "")
	server.SetFault("*", resolvertest.Drop)
	db := storetest.SQLite(t)
	d := start(t, db, "DMARCD_DNS="+server.Addr())
	token := tokenForm.FindString(d.out)
	request := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/domains", strings.NewReader(`{"domain":"example.com"}`)))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answered := make(chan int, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	musttest.Do(t, server.Await(t.Context(), "_dmarc.example.com", 16, 1))
	began := time.Now()
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the stop took %v", took)
	}
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("the request in flight was answered %d, want 201", status)
	}
}
