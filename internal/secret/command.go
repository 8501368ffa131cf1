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
	// commandTimeout is for a command that asks a vault.
	commandTimeout = 30 * time.Second
	// lifetime is how long the output of a command is used. After an error the command runs again.
	lifetime = 5 * time.Minute
)

// Command returns the keys that a command prints, a program and its arguments separated by spaces. Its
// output is kept in memory for five minutes.
func Command(line string) *Keys {
	c := &command{words: strings.Fields(line)}
	return &Keys{source: "the output of secret.command", read: c.read}
}

type command struct {
	words []string
	mu    sync.Mutex
	text  string
	until time.Time
}

func (c *command) read() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.text, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0], c.words[1:]...) //nolint:gosec // the operator's own command
	cmd.WaitDelay = time.Second
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("get the key: %s: %w: %s", c.words[0], err, bytes.TrimSpace(errs.text))
	}
	c.text, c.until = string(out.text), time.Now().Add(lifetime)
	return c.text, nil
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
