package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// commandTimeout is for a command that asks a vault, the first time. Later a transaction may wait for
	// it, and others for that: refreshTimeout is less than their patience.
	commandTimeout = 30 * time.Second
	refreshTimeout = 2 * time.Second
	// lifetime is how long the output of a command is used. If the command fails after that, the output is
	// used for another retryInterval.
	lifetime      = 5 * time.Minute
	retryInterval = time.Minute
)

// Command returns the keys that a command prints, a program and its arguments separated by spaces. Its
// output is kept in memory, and read again after five minutes. If the command fails then, the output of
// before stays in use. now is the clock.
func Command(line string, now func() time.Time) *Keys {
	c := &command{words: strings.Fields(line), now: now}
	return &Keys{source: "the output of secret.command", read: c.read}
}

type command struct {
	words []string
	now   func() time.Time
	mu    sync.Mutex
	text  string // "" before the first output
	until time.Time
}

func (c *command) read() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text != "" && c.now().Before(c.until) {
		return c.text, nil
	}
	timeout := commandTimeout
	if c.text != "" {
		timeout = refreshTimeout
	}
	text, err := c.run(timeout)
	switch {
	case err == nil:
		c.text, c.until = text, c.now().Add(lifetime)
	case c.text != "":
		c.until = c.now().Add(retryInterval)
	default:
		return "", err
	}
	return c.text, nil
}

func (c *command) run(timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0], c.words[1:]...) //nolint:gosec // the operator's own command
	cmd.WaitDelay = time.Second
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("get the key: %s: %w: %s", c.words[0], err, bytes.TrimSpace(errs.text))
	}
	return string(out.text), nil
}

// limited keeps what is written. It ends a command that writes too much.
type limited struct{ text []byte }

func (l *limited) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > maxKeys {
		return 0, errors.New("its output is too long")
	}
	l.text = append(l.text, p...)
	return len(p), nil
}
