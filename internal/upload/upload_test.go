package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/upload"
)

// quick returns limits that a test can wait for.
func quick() upload.Limits {
	limits := upload.DefaultLimits()
	limits.Short = 1000
	return limits
}

// serve starts a server that reads bodies through a gate and answers with their length,
// or with 408 or 503. It sends to held for each long body, and holds it until it can
// receive from hold. It returns its address.
func serve(t *testing.T, limits upload.Limits, held chan<- struct{}, hold <-chan struct{}) string {
	t.Helper()
	gate := upload.NewGate(limits)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := gate.Body(w, r, dmarcd.TeamID(len(r.URL.Path)))
		defer body.Close()
		n, err := io.Copy(io.Discard, body)
		switch {
		case errors.Is(err, upload.ErrSlow):
			w.WriteHeader(http.StatusRequestTimeout)
		case errors.Is(err, dmarcd.ErrTemporary):
			w.WriteHeader(http.StatusServiceUnavailable)
		case err != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			if n > limits.Short {
				held <- struct{}{}
				<-hold
			}
			_, _ = fmt.Fprint(w, n)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// post sends a body and returns the status.
func post(t *testing.T, url string, body io.Reader) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := musttest.Get(http.NewRequestWithContext(ctx, http.MethodPost, url, body))(t)
	answer, err := http.DefaultClient.Do(r)
	musttest.Do(t, err)
	_ = answer.Body.Close() // read-only
	return answer.StatusCode
}

// TestOneByteShort sends a body that never ends, and one that goes on for ever in small
// pieces. Neither holds the connection for longer than the limits.
func TestOneByteShort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*upload.Limits)
		pieces time.Duration // a byte each
	}{
		{"idle", func(l *upload.Limits) { l.Idle = 100 * time.Millisecond }, 0},
		{"too slow", func(l *upload.Limits) { l.Grace = 200 * time.Millisecond }, 10 * time.Millisecond},
		{"too long in all", func(l *upload.Limits) { l.Rate, l.Total = 1, 200*time.Millisecond }, 10 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			limits := quick()
			tt.change(&limits)
			address := strings.TrimPrefix(serve(t, limits, nil, nil), "http://")
			conn := musttest.Get((&net.Dialer{}).DialContext(t.Context(), "tcp", address))(t)
			defer func() { _ = conn.Close() }() // the server closes it
			musttest.Get(fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n%099d", 0))(t)
			stop := make(chan struct{})
			defer close(stop)
			if tt.pieces > 0 {
				go func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(tt.pieces):
							_, _ = conn.Write([]byte("x")) // fails once the server has answered
						}
					}
				}()
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			status := make([]byte, len("HTTP/1.1 408"))
			if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 408" {
				t.Errorf("got %q and error %v, want 408", status, err)
			}
		})
	}
}

// TestLongBodiesAreBounded holds as many bodies as one team may send, and then as many as
// may come from one network.
func TestLongBodiesAreBounded(t *testing.T) {
	t.Parallel()
	limits := quick()
	limits.Bodies, limits.PerTeam, limits.PerNetwork, limits.Wait = 4, 1, 2, 2*time.Second
	held, hold := make(chan struct{}), make(chan struct{})
	url := serve(t, limits, held, hold)
	long := bytes.Repeat([]byte("x"), 5000)
	done := make(chan int)
	send := func(path string) {
		go func() { done <- post(t, url+path, bytes.NewReader(long)) }()
		<-held
	}
	send("/one")
	if got := post(t, url+"/one", bytes.NewReader(long)); got != http.StatusServiceUnavailable {
		t.Errorf("a second body of the team: got %d, want 503", got)
	}
	if got := post(t, url+"/one", strings.NewReader("x")); got != http.StatusOK {
		t.Errorf("a short body of the team: got %d, want 200", got)
	}
	send("/second")
	if got := post(t, url+"/another", bytes.NewReader(long)); got != http.StatusServiceUnavailable {
		t.Errorf("a third body from the network: got %d, want 503", got)
	}
	for range 2 {
		hold <- struct{}{}
		if got := <-done; got != http.StatusOK {
			t.Errorf("got %d, want 200", got)
		}
	}
	send("/one")
	hold <- struct{}{}
	if got := <-done; got != http.StatusOK {
		t.Errorf("after the others: got %d, want 200", got)
	}
}

// TestATeamThatWaitsLeavesSlotsToOthers fills the slots of one team from two networks. A body of
// another team from a third network does not wait for them.
func TestATeamThatWaitsLeavesSlotsToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := quick()
		limits.Bodies, limits.PerTeam, limits.PerNetwork = 4, 1, 2
		gate := upload.NewGate(limits)
		ctx, cancel := context.WithCancel(t.Context())
		var received atomic.Int64
		receive := func(team dmarcd.TeamID, address string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 5000)))
			r.RemoteAddr = address
			body := gate.Body(httptest.NewRecorder(), r, team)
			defer body.Close()
			if _, err := io.Copy(io.Discard, body); err == nil {
				received.Add(1)
				<-ctx.Done()
			}
		}
		var all sync.WaitGroup
		for _, address := range []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "192.0.2.2:2"} {
			all.Go(func() { receive(1, address) })
		}
		synctest.Wait()
		if got := received.Load(); got != 1 {
			t.Errorf("got %d bodies of the team, want 1", got)
		}
		all.Go(func() { receive(2, "192.0.2.3:1") })
		synctest.Wait() // no time passes
		if got := received.Load(); got != 2 {
			t.Errorf("got %d bodies, want that of the other team too", got)
		}
		cancel()
		all.Wait()
	})
}
