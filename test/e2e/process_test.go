package e2e_test

import (
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/api/apitest"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

var tokenPattern = regexp.MustCompile(`dmd_[0-9A-Za-z]{40}`)

// server is a process of "dmarcd serve".
type server struct {
	*daemon.Daemon
	in     *installation
	client *http.Client

	prefix    string // path of the base URL without a trailing slash
	baseURL   string // URL of the API for clients
	unlimited bool   // the rate limit is off
	validator *apitest.Validator
}

// serve starts a server with additional settings of the form NAME=value, and waits until
// it is ready.
func (in *installation) serve(settings ...string) *server {
	in.t.Helper()
	s := in.start(settings...)
	s.await()
	declared := slices.ContainsFunc(settings, func(s string) bool { return strings.HasPrefix(s, "DMARCD_TOKEN=") })
	if in.token == "" && !declared {
		daemon.Eventually(in.t, daemon.StartLimit, "the first start prints a token", func() bool {
			in.token = s.printedToken()
			return in.token != ""
		})
		in.remember(in.token)
	}
	return s
}

// start starts a server without waiting for it.
func (in *installation) start(settings ...string) *server {
	in.t.Helper()
	s := &server{
		in: in, prefix: "/api",
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       answerLimit,
		},
	}
	for _, setting := range settings {
		switch name, value, _ := strings.Cut(setting, "="); name {
		case "DMARCD_BASE_URL":
			base := musttest.Get(url.Parse(value))(in.t)
			s.baseURL = strings.TrimSuffix(value, "/")
			s.prefix = strings.TrimSuffix(base.Path, "/")
		case "DMARCD_RATE_LIMIT":
			s.unlimited = value == "0"
		}
	}
	s.Daemon = in.binary(settings).Start(in.t, "serve")
	in.t.Cleanup(s.client.CloseIdleConnections)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.servers = append(in.servers, s)
	return s
}

// printedToken returns the token that the first start printed, or "".
func (s *server) printedToken() string { return tokenPattern.FindString(s.Printed()) }

// await waits until the server is ready, and reads its OpenAPI document.
func (s *server) await() {
	t := s.in.t
	t.Helper()
	s.Await()
	if s.baseURL == "" {
		s.baseURL = "http://" + s.HTTP + s.prefix
	}
	document := s.outside(s.prefix + "/openapi.json").body
	var err error
	if s.prefix == "/api" {
		s.validator, err = proven.of(s.in.db.Engine, document)
	} else {
		s.validator, err = apitest.New(document)
	}
	musttest.Do(t, err)
}

func TestRequestInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	each(t, exampleZone, func(t *testing.T, in *installation) {
		s := in.serve("DMARCD_RESOLVER_TIMEOUT=4s")
		s.add("example.com")
		in.setZone(`_dmarc.example.com. TXT "v=DMARC1; p=none"`)
		asked := in.dns.Asked("_dmarc.example.com", dns.TXT)
		release := in.dns.Hold("_dmarc.example.com")
		defer release()
		type outcome struct {
			answer answer
			err    error
		}
		answered := make(chan outcome, 1)
		go func() {
			a, err := s.try(verifying(in.token, "example.com"))
			answered <- outcome{a, err}
		}()
		musttest.Do(t, in.dns.Await(t.Context(), "_dmarc.example.com", dns.TXT, asked+1))
		s.Signal(syscall.SIGTERM)
		daemon.Eventually(t, daemon.StopLimit, "no new connection is taken", func() bool {
			connection, err := net.Dial("tcp", s.HTTP)
			if err == nil {
				_ = connection.Close() // only tests the connection
			}
			return err != nil
		})
		release()
		got := <-answered
		if got.err != nil {
			t.Fatalf("the request in flight: %v", got.err)
		}
		got.answer.wantStatus(t, http.StatusOK)
		if d := readDomain(t, got.answer.body); d.Policy != "none" {
			t.Errorf("the request in flight: got %s want the new record", got.answer.body)
		}
		s.Stopped()
	})
}

func TestStopDoesNotWaitForSilentDNS(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve()
		in.dns.SetFault("*", resolvertest.Drop)
		in.addMany([]string{"a.example", "b.example", "c.example"})
		musttest.Do(t, in.dns.Await(t.Context(), "_dmarc.a.example", dns.TXT, 1))
		s.Stop()
	})
}

func TestInterruptStopsToo(t *testing.T) {
	t.Parallel()
	onSQLite(t, "", func(_ *testing.T, in *installation) {
		s := in.serve()
		s.Signal(syscall.SIGINT)
		s.Stopped()
	})
}
