package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/client"
	"github.com/dmarcd/dmarcd/internal/api"
)

// readBuffer is the size of a read from the API in this process: each one waits for the other side.
const readBuffer = 64 << 10

// Client returns a client of the API for a team, with the rights of the operator: the commands that can
// also work with a remote server use it. Close it after use. The API is in this process and listens
// nowhere.
func (i *Installation) Client(team dmarcd.TeamID) (c *client.Client, end func() error, err error) {
	endpoints, err := api.New(api.Options{
		Service: i.Service, Authenticator: operatorOf(team), Operator: true, MaxUpload: int64(i.Config.Limit.Upload),
		BaseURL: i.Config.BaseURL, WriteTimeout: writeTimeout, Now: time.Now, Log: i.log,
	})
	if err != nil {
		return nil, nil, err
	}
	connections := pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: endpoints, ReadHeaderTimeout: headerTimeout, ErrorLog: slog.NewLogLogger(i.log.Handler(), slog.LevelError)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(connections) }()
	c = client.New("http://dmarcd"+i.Config.Prefix(), "")
	c.HTTP = &http.Client{Transport: &http.Transport{DialContext: connections.dial, DisableCompression: true, ReadBufferSize: readBuffer}}
	c.Retries = 1 // an export of more than an hour needs another request
	return c, func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	}, nil
}

// operatorOf authenticates every request as one for a team.
type operatorOf dmarcd.TeamID

func (o operatorOf) Authenticate(_ context.Context, _, _ string) (dmarcd.Credential, error) {
	return dmarcd.Credential{Token: dmarcd.Token{Team: dmarcd.TeamID(o), Scope: dmarcd.ScopeAdmin}, API: true}, nil
}

// pipes is a listener for connections within the process.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.connections <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.connections:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It is called once.
func (p pipes) Close() error {
	close(p.closed)
	return nil
}

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "dmarcd", Net: "pipe"} }
