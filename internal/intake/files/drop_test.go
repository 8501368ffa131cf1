package files_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

const interval = 5 * time.Second

// dropping runs a drop folder in a synctest bubble until f returns.
func dropping(t *testing.T, folder string, k *fakeStore, f func(t *testing.T)) {
	t.Helper()
	a := acceptor(t)
	a.Limits.Containers.Input = 10_000
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		drop := &files.Drop{Folder: folder, Interval: interval, Acceptor: a, Store: k, Log: slog.New(slog.DiscardHandler)}
		go func() { done <- drop.Run(ctx) }()
		synctest.Wait()
		f(t)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("got error %v, want none", err)
		}
	})
}

// polls waits for n polls of the folder.
func polls(n int) {
	time.Sleep(time.Duration(n) * interval)
	synctest.Wait()
}

// tree returns all files below a folder.
func tree(t *testing.T, folder string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(folder, path) // it is below
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	musttest.Do(t, err)
	slices.Sort(paths)
	return paths
}

func wantTree(t *testing.T, folder string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, tree(t, folder)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestDropTakesWhatIsComplete(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "drop")
	k := &fakeStore{}
	dropping(t, folder, k, func(t *testing.T) {
		write(t, folder, "a.xml", report("1"), "b.txt", "hello", "box", mailOf("2")+mailOf("3"), ".part", report("4"),
			"sub/c.xml", report("5"), "mixed", mailOf("6")+"From x@example.org Mon Nov  3 10:00:00 2025\nSubject: no report\n\nhello\n",
			"growing.xml", "<feedback>")
		polls(1)
		wantTree(t, folder, ".part", "a.xml", "b.txt", "box", "growing.xml", "mixed", "sub/c.xml")
		write(t, folder, "growing.xml", report("7"))
		polls(1)
		wantTree(t, folder, ".part", "done/a.xml", "done/box", "done/mixed", "growing.xml", "rejected/b.txt", "sub/c.xml")
		polls(1)
		wantTree(t, folder, ".part", "done/a.xml", "done/box", "done/growing.xml", "done/mixed", "rejected/b.txt", "sub/c.xml")
	})
	if diff := cmp.Diff([]string{"1", "2", "3", "6", "7"}, k.ids); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestDropOverwritesNothing drops files under names that are taken.
func TestDropOverwritesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	k := &fakeStore{}
	dropping(t, folder, k, func(t *testing.T) {
		for _, id := range []string{"1", "2", "3"} {
			write(t, folder, "a.xml", report(id))
			polls(2)
		}
		wantTree(t, folder, "done/2-a.xml", "done/3-a.xml", "done/a.xml")
	})
	first, err := os.ReadFile(filepath.Join(folder, "done", "a.xml"))
	if err != nil || string(first) != report("1") {
		t.Errorf("got %s and error %v, want the first file as it was", first, err)
	}
}

// TestDropTriesAgain checks that a file stays in place while nothing can be stored.
func TestDropTriesAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	k := &fakeStore{broken: func(string) error { return dmarcd.ErrTemporary }}
	dropping(t, folder, k, func(t *testing.T) {
		write(t, folder, "a.xml", report("1"))
		polls(3)
		wantTree(t, folder, "a.xml")
		k.mu.Lock()
		k.broken = nil
		k.mu.Unlock()
		polls(1)
		wantTree(t, folder, "done/a.xml")
	})
	if diff := cmp.Diff([]string{"1"}, k.ids); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestDropRejectsWhatCannotBeStored checks that a file that the database refuses is moved, and one over a
// quota stays.
func TestDropRejectsWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	k := &fakeStore{broken: func(id string) error {
		return map[string]error{"odd": errors.New("the row is too long"), "full": &dmarcd.QuotaError{Name: dmarcd.QuotaReports, Max: 1}}[id]
	}}
	dropping(t, folder, k, func(t *testing.T) {
		write(t, folder, "a.xml", report("odd"), "b.xml", report("full"), "c.xml", report("1"))
		polls(3)
		wantTree(t, folder, "b.xml", "done/c.xml", "rejected/a.xml")
	})
}

func TestDropRejectsLongFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	k := &fakeStore{}
	dropping(t, folder, k, func(t *testing.T) {
		write(t, folder, "long.xml", string(make([]byte, 20_000)))
		polls(2)
		wantTree(t, folder, "rejected/long.xml")
	})
	if k.steps != 0 {
		t.Errorf("got %d steps, want nothing kept", k.steps)
	}
}

func TestDropNeedsItsFolders(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "done", "a file in the way")
	drop := &files.Drop{Folder: folder, Interval: interval, Acceptor: acceptor(t), Store: &fakeStore{}, Log: slog.New(slog.DiscardHandler)}
	if err := drop.Run(t.Context()); err == nil {
		t.Error("got no error, want one about the folder")
	}
}
