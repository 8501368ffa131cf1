package e2e_test

import (
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/resolver/resolvertest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

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
