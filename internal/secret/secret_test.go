package secret_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/secret"
)

func load(t *testing.T, path string) *secret.Key {
	t.Helper()
	return musttest.Get(secret.Load(path))(t)
}

func TestSealedSecretsOpenOnlyAsTheyWereSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	key := load(t, path)
	other := load(t, filepath.Join(t.TempDir(), "key"))
	plain := []byte("correct horse")
	sealed := key.Seal(plain, "team_1/box_1")
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)-1] ^= 1
	for _, row := range []struct {
		name    string
		key     *secret.Key
		sealed  []byte
		context string
		want    error
		message string
	}{
		{name: "as it was sealed", key: key, sealed: sealed, context: "team_1/box_1"},
		{name: "with the key read again", key: load(t, path), sealed: sealed, context: "team_1/box_1"},
		{name: "in another row", key: key, sealed: sealed, context: "team_1/box_2", want: secret.ErrDamaged, message: "enter it again"},
		{name: "of another team", key: key, sealed: sealed, context: "team_2/box_1", want: secret.ErrDamaged, message: "enter it again"},
		{name: "with another key", key: other, sealed: sealed, context: "team_1/box_1", want: secret.ErrOtherKey, message: "restore that key file"},
		{name: "changed", key: key, sealed: flipped, context: "team_1/box_1", want: secret.ErrDamaged, message: "enter it again"},
		{name: "cut short", key: key, sealed: sealed[:10], context: "team_1/box_1", want: secret.ErrDamaged, message: "enter it again"},
		{name: "empty", key: key, sealed: nil, context: "team_1/box_1", want: secret.ErrDamaged, message: "enter it again"},
		{name: "of another version", key: key, sealed: append([]byte{2}, sealed[1:]...), context: "team_1/box_1", want: secret.ErrDamaged, message: "enter it again"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := row.key.Open(row.sealed, row.context)
			if !errors.Is(err, row.want) {
				t.Fatalf("got error %v, want %v", err, row.want)
			}
			if row.want == nil && !bytes.Equal(got, plain) {
				t.Errorf("got %q, want %q", got, plain)
			}
			if row.want != nil && (got != nil || !strings.Contains(err.Error(), row.message)) {
				t.Errorf("got %q and %q, want nothing and words with %q", got, err, row.message)
			}
		})
	}
}

// TestFileFollowsItsKey replaces the key file while it is in use.
func TestFileFollowsItsKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	file := secret.File(path)
	if _, err := file.Open([]byte("sealed"), "row"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want that it is missing", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want none made to open something", err)
	}
	sealed := musttest.Get(file.Seal([]byte("plain"), "row"))(t)
	musttest.Do(t, os.Rename(path, path+".right"))
	load(t, path) // another key
	if _, err := file.Open(sealed, "row"); !errors.Is(err, secret.ErrOtherKey) {
		t.Errorf("another key: got %v, want %v", err, secret.ErrOtherKey)
	}
	musttest.Do(t, os.Rename(path+".right", path))
	if plain, err := file.Open(sealed, "row"); err != nil || string(plain) != "plain" {
		t.Errorf("restored: got %q and %v, want it opened", plain, err)
	}
}

func TestSealingHidesWhatItSeals(t *testing.T) {
	t.Parallel()
	key := load(t, filepath.Join(t.TempDir(), "key"))
	plain := []byte("correct horse")
	one, two := key.Seal(plain, "row"), key.Seal(plain, "row")
	if bytes.Contains(one, plain) {
		t.Error("the sealed text holds the secret")
	}
	if bytes.Equal(one, two) {
		t.Error("the same secret sealed twice looks the same: equal passwords could be told")
	}
}

func TestKeyFileIsMadeForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "key")
	load(t, path)
	info := musttest.Get(os.Stat(path))(t)
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("got a key file with mode %v, want -rw-------", got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v (%v) beside the key file, want nothing", entries, err)
	}
}

func TestKeyFileIsMadeOnceByMany(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	var all sync.WaitGroup
	sealed := make([][]byte, 16)
	for i := range sealed {
		all.Go(func() {
			key, err := secret.Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			sealed[i] = key.Seal([]byte("plain"), "row")
		})
	}
	all.Wait()
	key := load(t, path)
	for i, s := range sealed {
		if _, err := key.Open(s, "row"); err != nil {
			t.Errorf("loader %d had another key: %v", i, err)
		}
	}
}

func TestKeyFilesThatAreRejected(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(func() string {
		path := filepath.Join(t.TempDir(), "key")
		load(t, path)
		return path
	}())
	musttest.Do(t, err)
	for _, row := range []struct {
		name    string
		text    string
		mode    os.FileMode
		message string // "" if accepted
	}{
		{name: "of the owner", text: string(good), mode: 0o600},
		{name: "that may not be written", text: string(good), mode: 0o400},
		{name: "handed over through a group", text: string(good), mode: 0o440},
		{name: "without the end of its line", text: strings.TrimSpace(string(good)), mode: 0o600},
		{name: "readable by all", text: string(good), mode: 0o644, message: "chmod 600"},
		{name: "writable by the group", text: string(good), mode: 0o620, message: "chmod 600"},
		{name: "empty", text: "", mode: 0o600, message: "is not a dmarcd key file"},
		{name: "with half a key", text: string(good)[:30], mode: 0o600, message: "is not a dmarcd key file"},
		{name: "with something else", text: "hello\n", mode: 0o600, message: "is not a dmarcd key file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			musttest.Do(t, os.WriteFile(path, []byte(row.text), row.mode))
			if err := os.Chmod(path, row.mode); err != nil { // regardless of the umask
				t.Fatal(err)
			}
			_, err := secret.Load(path)
			if row.message == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.message) {
				t.Errorf("got error %v, want one with %q", err, row.message)
			}
			if stored, _ := os.ReadFile(path); string(stored) != row.text {
				t.Errorf("the file was changed to %q", stored)
			}
		})
	}
}
