package e2e_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a server and its PostgreSQL, and can be cut.
type proxy struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// startProxy returns a proxy to the server of a postgres:// URL, and the URL
// that leads through it.
func startProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	through, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil || !p.keep(client, backend) {
			_ = client.Close() // as a server that is gone does
			continue
		}
		p.serving.Go(func() { p.pump(client, backend) })
		p.serving.Go(func() { p.pump(backend, client) })
	}
}

// keep remembers the connections of a pair, unless the proxy is cut.
func (p *proxy) keep(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		if p.isCut {
			_ = c.Close() // it is not used
			continue
		}
		p.open[c] = true
	}
	return !p.isCut
}

// pump copies one direction, and closes both ends when it is over.
func (p *proxy) pump(to, from net.Conn) {
	_, _ = io.Copy(to, from) // the end of either side ends it
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close() // the other pump may have closed it
		delete(p.open, c)
	}
}

// cut closes all connections, and new ones as soon as they come.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.open {
		_ = c.Close() // its pump tells
	}
}

// restore lets connections pass again.
func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}
