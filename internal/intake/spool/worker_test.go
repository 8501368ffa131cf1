package spool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/spool"
)

// handler is a Handle that remembers what it got.
type handler struct {
	t       *testing.T
	batches chan []string
	// answer returns the error for the n-th handling of a mail, from 1.
	answer func(text string, n int) error
	count  map[string]int
}

func newHandler(t *testing.T, answer func(text string, n int) error) *handler {
	return &handler{t: t, batches: make(chan []string, 100), answer: answer, count: make(map[string]int)}
}

func (h *handler) handle(_ context.Context, batch []*spool.Entry) []error {
	var texts []string
	var errs []error
	for _, e := range batch {
		text := contents(h.t, e)
		h.count[text]++
		texts = append(texts, text)
		errs = append(errs, h.answer(text, h.count[text]))
	}
	h.batches <- texts
	return errs
}

// work runs a worker until the returned function is called.
func work(t *testing.T, s *spool.Spool, h *handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	worker := &spool.Worker{Spool: s, Handle: h.handle}
	go func() { ended <- worker.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got %v want the worker to end in peace", err)
		}
	}
}

func handled(string, int) error { return nil }

func TestWorkerTakesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, configuration(folder))
	mustPut(t, s, "left")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, configuration(folder))
	h := newHandler(t, handled)
	stop := work(t, s, h)
	if diff := cmp.Diff([]string{"left"}, <-h.batches); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stop()
	if got := files(t, folder, ".mail"); len(got) != 0 {
		t.Errorf("got %q want the mail removed", got)
	}
}

func TestWorkerSeesACommitAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, configuration(t.TempDir()))
		h := newHandler(t, handled)
		stop := work(t, s, h)
		defer stop()
		for i := range 3 {
			synctest.Wait() // the worker sleeps
			text := fmt.Sprint("mail ", i)
			start := time.Now()
			mustPut(t, s, text)
			if diff := cmp.Diff([]string{text}, <-h.batches); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if waited := time.Since(start); waited > 0 {
				t.Errorf("got it after %s want at once", waited)
			}
		}
	})
}

func TestWorkerWorksInBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		sizes []int
		want  []int // mails in each batch
	}{
		{"by number", make([]int, 45), []int{20, 20, 5}},
		{"by size", []int{10 << 20, 6 << 20, 1 << 20, 17 << 20, 1}, []int{2, 1, 1, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config := configuration(t.TempDir())
			config.Limits.Bytes = 1 << 30
			s := open(t, config)
			for _, size := range test.sizes {
				mustPut(t, s, strings.Repeat("x", size))
			}
			h := newHandler(t, handled)
			stop := work(t, s, h)
			defer stop()
			for _, want := range test.want {
				if got := len(<-h.batches); got != want {
					t.Errorf("got a batch of %d want %d", got, want)
				}
			}
		})
	}
}

func TestWorkerTriesAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
	}{
		{"temporary", dmarcd.ErrTemporary},
		{"not known to be temporary", dmarcd.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := open(t, configuration(t.TempDir()))
				mustPut(t, s, "bad")
				mustPut(t, s, "good")
				h := newHandler(t, func(text string, n int) error {
					if text == "bad" && n <= 12 {
						return test.err
					}
					return nil
				})
				stop := work(t, s, h)
				defer stop()
				if diff := cmp.Diff([]string{"bad", "good"}, <-h.batches); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				last := time.Now()
				for i := range 12 {
					if diff := cmp.Diff([]string{"bad"}, <-h.batches); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					if got, want := time.Since(last), min(time.Second<<i, 5*time.Minute); got != want {
						t.Errorf("try %d: got it after %s want %s", i+2, got, want)
					}
					last = time.Now()
				}
				synctest.Wait()
				if got := texts(t, s); len(got) != 0 {
					t.Errorf("got %q want nothing left", got)
				}
			})
		})
	}
}

func TestWorkerKeepsWhatWasInterrupted(t *testing.T) {
	t.Parallel()
	s := open(t, configuration(t.TempDir()))
	mustPut(t, s, "mail")
	ctx, cancel := context.WithCancel(t.Context())
	worker := &spool.Worker{Spool: s, Handle: func(ctx context.Context, batch []*spool.Entry) []error {
		cancel()
		return []error{ctx.Err()}
	}}
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mail"}, texts(t, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
