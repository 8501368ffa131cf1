package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/internal/api/apitest"
)

const (
	// startLimit is generous: the machine may be busy with other tests.
	startLimit = 3 * time.Minute
	// stopLimit is three times what the operating contract promises, for the same reason.
	stopLimit = 30 * time.Second
	// pollInterval is how often eventually looks.
	pollInterval = 10 * time.Millisecond
)

var tokenPattern = regexp.MustCompile(`dmd_[0-9A-Za-z]{40}`)

// output collects what a process writes.
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

// server is a process that runs `dmarcd serve`.
type server struct {
	in             *installation
	process        *exec.Cmd
	stdout, stderr *output
	ended          chan struct{} // closed when the process is gone
	client         *http.Client

	address   string // host:port of the HTTP listener
	prefix    string // the path of the base URL without a trailing slash
	baseURL   string // where clients see the API
	unlimited bool   // the rate limit is off
	takesMail bool   // there is an SMTP listener
	smtp      string // host:port of it
	validator *apitest.Validator
}

// serve starts a server with further settings of the form NAME=value, and
// returns when it answers.
func (in *installation) serve(settings ...string) *server {
	in.t.Helper()
	s := in.start(settings...)
	s.await()
	declared := slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, "DMARCD_TOKEN=") })
	if in.token == "" && !declared {
		eventually(in.t, startLimit, "the first start prints a token", func() bool {
			in.token = s.printedToken()
			return in.token != ""
		})
		in.remember(in.token)
	}
	return s
}

// start starts a server and does not wait for it.
func (in *installation) start(settings ...string) *server {
	in.t.Helper()
	s := &server{
		in: in, stdout: &output{}, stderr: &output{}, ended: make(chan struct{}), prefix: "/api",
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       answerLimit,
		},
	}
	for _, setting := range settings {
		switch name, value, _ := strings.Cut(setting, "="); name {
		case "DMARCD_BASE_URL":
			base, err := url.Parse(value)
			if err != nil {
				in.t.Fatal(err)
			}
			s.baseURL = strings.TrimSuffix(value, "/")
			s.prefix = strings.TrimSuffix(base.Path, "/")
		case "DMARCD_RATE_LIMIT":
			s.unlimited = value == "0"
		case "DMARCD_SMTP_LISTEN":
			s.takesMail = value != ""
		}
	}
	s.process = exec.Command(in.program, "serve")
	s.process.Env = in.environment(settings)
	s.process.Dir = in.t.TempDir()
	s.process.Stdout, s.process.Stderr = s.stdout, s.stderr
	if err := s.process.Start(); err != nil {
		in.t.Fatal(err)
	}
	go func() {
		_ = s.process.Wait() // the status is read from ProcessState
		close(s.ended)
	}()
	in.t.Cleanup(func() {
		if s.running() { // the test failed before it could stop it
			_ = s.process.Process.Kill()
			<-s.ended
		}
		s.client.CloseIdleConnections()
	})
	in.mu.Lock()
	defer in.mu.Unlock()
	in.servers = append(in.servers, s)
	return s
}

// printedToken returns the token that a first start printed, or "".
func (s *server) printedToken() string { return tokenPattern.FindString(s.stdout.String()) }

// await returns when the server says that it is serving, and reads its OpenAPI
// document.
func (s *server) await() {
	t := s.in.t
	t.Helper()
	eventually(t, startLimit, "the server is serving", func() bool {
		if !s.running() {
			t.Fatalf("the server ended with status %d:\n%s", s.process.ProcessState.ExitCode(), s.stderr)
		}
		s.address = s.loggedAddress("serving")
		if s.takesMail {
			s.smtp = s.loggedAddress("receiving mail")
		}
		return s.address != "" && s.takesMail == (s.smtp != "")
	})
	if s.baseURL == "" {
		s.baseURL = "http://" + s.address + s.prefix
	}
	document := s.outside(s.prefix + "/openapi.json").body
	var err error
	if s.prefix == "/api" {
		s.validator, err = proven.of(s.in.db.Engine, document)
	} else {
		s.validator, err = apitest.New(document)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// loggedAddress reads the address that a message of the log tells, "" if it is not
// there yet.
func (s *server) loggedAddress(message string) string {
	for line := range strings.Lines(s.stderr.String()) {
		var entry struct{ Msg, Address string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == message {
			return entry.Address
		}
	}
	return ""
}

// running reports whether the process is still there.
func (s *server) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to the process.
func (s *server) signal(signal os.Signal) {
	s.in.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.in.t.Fatal(err)
	}
}

// stop ends the process as an operator does and demands that it does so in time
// and with status 0.
func (s *server) stop() {
	s.in.t.Helper()
	s.signal(syscall.SIGTERM)
	s.stopped()
}

// stopped waits for the end of a process that got SIGTERM.
func (s *server) stopped() {
	t := s.in.t
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(stopLimit):
		s.signal(syscall.SIGKILL)
		<-s.ended
		t.Errorf("SIGTERM: still running after %v", stopLimit)
		return
	}
	if got := s.process.ProcessState.ExitCode(); got != 0 {
		t.Errorf("SIGTERM: got status %d want 0; the log:\n%s", got, s.stderr)
	}
}

// kill ends the process at once.
func (s *server) kill() {
	s.in.t.Helper()
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// refused waits for the end of a server that must not start, and returns its
// exit status and what it said.
func (s *server) refused() (status int, said string) {
	t := s.in.t
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(startLimit):
		t.Fatalf("the server is still running after %v:\n%s", startLimit, s.stderr)
	}
	return s.process.ProcessState.ExitCode(), s.stderr.String()
}

// eventually returns when the condition holds and fails the test if that takes
// longer than limit. It returns how long it took.
func eventually(t *testing.T, limit time.Duration, what string, condition func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		took := time.Since(began)
		if condition() {
			return took
		}
		if took > limit {
			t.Fatalf("%s: not so after %v", what, limit)
		}
		<-ticker.C
	}
}
