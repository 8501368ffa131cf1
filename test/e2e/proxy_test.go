package e2e_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// proxy forwards connections to PostgreSQL, and can interrupt them.
type proxy struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// startProxy returns a proxy to the server of a postgres:// URL, and the URL of the
// proxy.
func startProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	through := musttest.Get(url.Parse(dsn))(t)
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &proxy{listener: listener, target: through.Host, open: map[net.Conn]bool{}}
	p.serving.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		p.cut()
		p.serving.Wait()
	})
	through.Host = listener.Addr().String()
	return p, through.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		backend, err := net.Dial("tcp", p.target)
		if err != nil || !p.register(client, backend) {
			_ = client.Close() // like a stopped server
			continue
		}
		p.serving.Go(func() { p.pump(client, backend) })
		p.serving.Go(func() { p.pump(backend, client) })
	}
}

// register adds a pair of connections, unless the proxy is cut.
func (p *proxy) register(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		if p.isCut {
			_ = c.Close() // not used
			continue
		}
		p.open[c] = true
	}
	return !p.isCut
}

// pump copies one direction, and closes both connections at the end.
func (p *proxy) pump(to, from net.Conn) {
	_, _ = io.Copy(to, from) // ends when either side closes
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close() // may be closed already
		delete(p.open, c)
	}
}

// cut closes all connections, and new ones immediately.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.open {
		_ = c.Close() // its pump ends
	}
}

// restore allows connections again.
func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}
