package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastAnswers limits how long the end of the input waits for answers.
const lastAnswers = time.Minute

// draining is a transport whose input ends only when all calls are answered: the SDK cancels what is under
// way when it ends, and a script writes its calls and closes the pipe.
type draining struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (d draining) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := d.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &drainingConnection{Connection: connection, answered: make(chan struct{}, 1)}, nil
}

type drainingConnection struct {
	sdk.Connection

	mu   sync.Mutex
	open int
	// answered has an item after open was 0.
	answered chan struct{}
}

// Read implements sdk.Connection.
func (c *drainingConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil {
		c.drain(ctx)
		return nil, err
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() {
		c.count(1)
	}
	return message, nil
}

// Write implements sdk.Connection.
func (c *drainingConnection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if _, ok := message.(*jsonrpc.Response); ok {
		c.count(-1)
	}
	return err
}

func (c *drainingConnection) count(calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += calls
	if c.open == 0 {
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
}

// drain waits until all calls are answered. No others begin meanwhile.
func (c *drainingConnection) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastAnswers)
	defer cancel()
	for ctx.Err() == nil {
		c.mu.Lock()
		open := c.open
		c.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-c.answered:
		case <-ctx.Done():
		}
	}
}
