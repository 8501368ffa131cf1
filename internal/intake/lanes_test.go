package intake_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// patience is the deadline for expected events.
const patience = time.Minute

// lanedAcceptor returns an Acceptor for one core: one heavy message and four light ones at
// once, two of them of one payer.
func lanedAcceptor(t *testing.T) *intake.Acceptor {
	t.Helper()
	a := acceptor(t)
	a.Lanes = intake.NewLanes(1)
	return a
}

func messageOf(team dmarcd.TeamID, content []byte) intake.Message {
	m := message(content)
	m.Team = team
	return m
}

// open reads a message that must not wait.
func open(t *testing.T, a *intake.Acceptor, m intake.Message) *intake.Opened {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opened, err := a.Read(ctx, m)
	if err != nil {
		t.Fatalf("got error %v, want a delivery", err)
	}
	return opened
}

// waits checks that a message has to wait.
func waits(t *testing.T, a *intake.Acceptor, m intake.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if opened, err := a.Read(ctx, m); err == nil {
		opened.Close()
		t.Error("got a delivery, want the message to wait")
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want that of the context", err)
	}
}

func TestLightMessagesDoNotWaitForHeavyOnes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		return
	}
	a := lanedAcceptor(t)
	light := []byte(opening + record("192.0.2.1", 1, "pass") + closing)
	long := opening + strings.Repeat(record("192.0.2.1", 1, "pass"), 5000) + closing
	for name, heavy := range map[string][]byte{
		"long on the wire": []byte(long),
		"expands":          packtest.Gzip([]byte(long)),
		"many reports":     stored(t, manyReports(20)...),
	} {
		first := open(t, a, messageOf(1, heavy))
		if !first.Heavy() {
			t.Errorf("%s: got a light message, want a heavy one", name)
		}
		waits(t, a, messageOf(2, heavy))
		second := open(t, a, messageOf(2, light))
		if second.Heavy() {
			t.Errorf("%s: got a heavy message, want a light one", name)
		}
		second.Close()
		first.Close()
		open(t, a, messageOf(2, heavy)).Close()
	}
}

// blockedContent blocks reads until it is released.
type blockedContent struct {
	io.ReaderAt
	begun    chan<- struct{}
	released <-chan struct{}
}

func (b blockedContent) ReadAt(p []byte, offset int64) (int, error) {
	select {
	case b.begun <- struct{}{}:
	default:
	}
	<-b.released
	return b.ReaderAt.ReadAt(p, offset)
}

// TestOutsidersDoNotHoldUpTheTeam floods a team with mail while it and another team upload.
func TestOutsidersDoNotHoldUpTheTeam(t *testing.T) {
	t.Parallel()
	a := lanedAcceptor(t)
	content := []byte(opening + record("192.0.2.1", 1, "pass") + closing)
	begun, released := make(chan struct{}, 10), make(chan struct{})
	done := make(chan error)
	for range 10 {
		m := messageOf(1, content)
		m.Intake = dmarcd.IntakeSMTP
		m.Content = blockedContent{m.Content, begun, released}
		go func() {
			opened, err := a.Read(t.Context(), m)
			if err == nil {
				opened.Close()
			}
			done <- err
		}()
	}
	<-begun
	<-begun
	anonymous := messageOf(1, content)
	anonymous.Outsider = true
	waits(t, a, anonymous)
	open(t, a, messageOf(1, content)).Close()
	open(t, a, messageOf(2, content)).Close()
	close(released)
	for range 10 {
		if err := <-done; err != nil {
			t.Errorf("got error %v, want a delivery", err)
		}
	}
}
