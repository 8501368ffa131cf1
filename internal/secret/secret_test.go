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
	"time"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/secret"
)

// load returns the keys of a file, which it creates.
func load(t *testing.T, path string) *secret.Keys {
	t.Helper()
	keys := secret.File(path)
	musttest.Get(keys.Subkey("test"))(t)
	return keys
}

func seal(t *testing.T, keys *secret.Keys, plain, context string) []byte {
	t.Helper()
	return musttest.Get(keys.Seal([]byte(plain), context))(t)
}

func TestSealedSecretsOpenOnlyAsTheyWereSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	key := load(t, path)
	other := load(t, filepath.Join(t.TempDir(), "key"))
	plain := []byte("correct horse")
	sealed := seal(t, key, string(plain), "team_1/box_1")
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)-1] ^= 1
	for _, row := range []struct {
		name    string
		key     *secret.Keys
		sealed  []byte
		context string
		want    error
		message string
	}{
		{name: "as it was sealed", key: key, sealed: sealed, context: "team_1/box_1"},
		{name: "with the key read again", key: load(t, path), sealed: sealed, context: "team_1/box_1"},
		{name: "in another row", key: key, sealed: sealed, context: "team_1/box_2", want: secret.ErrDamaged, message: "enter it again"},
		{name: "of another team", key: key, sealed: sealed, context: "team_2/box_1", want: secret.ErrDamaged, message: "enter it again"},
		{name: "with another key", key: other, sealed: sealed, context: "team_1/box_1", want: secret.ErrOtherKey, message: "restore that key"},
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
	if _, err := file.Seal([]byte("plain"), "row"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file to seal: got %v, want that it is missing", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v, want none made to open or seal something", err)
	}
	load(t, path)
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
	one, two := seal(t, key, string(plain), "row"), seal(t, key, string(plain), "row")
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
			keys := secret.File(path)
			_, err := keys.Subkey("test")
			if err != nil {
				t.Error(err)
			}
			if sealed[i], err = keys.Seal([]byte("plain"), "row"); err != nil {
				t.Error(err)
			}
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
		{name: "empty", text: "", mode: 0o600, message: "must have a key"},
		{name: "with half a key", text: string(good)[:30], mode: 0o600, message: "must consist of keys"},
		{name: "with something else", text: "hello\n", mode: 0o600, message: "must consist of keys"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			musttest.Do(t, os.WriteFile(path, []byte(row.text), row.mode))
			if err := os.Chmod(path, row.mode); err != nil { // regardless of the umask
				t.Fatal(err)
			}
			_, err := secret.File(path).Seal(nil, "row")
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

// TestAddedKey adds a key to a file that is in use: what was sealed with the earlier one is opened
// until it is sealed again.
func TestAddedKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	keys := load(t, path)
	sealed := seal(t, keys, "plain", "row")
	musttest.Do(t, secret.AddKey(path))
	for _, again := range []bool{false, true} {
		if plain, err := keys.Open(sealed, "row"); err != nil || string(plain) != "plain" {
			t.Errorf("again %t: got %q and %v, want it opened", again, plain, err)
		}
		if current := musttest.Get(keys.Current(sealed))(t); current != again {
			t.Errorf("again %t: got current %t", again, current)
		}
		sealed = seal(t, keys, "plain", "row")
	}
	if info := musttest.Get(os.Stat(path))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, want that of the owner alone", info.Mode())
	}
}

// TestKeysOfACommand runs a command that prints keys, says nothing that is useful, fails, or is missing.
func TestKeysOfACommand(t *testing.T) {
	t.Parallel()
	text := secret.NewKey() + "\n" + secret.NewKey()
	path := filepath.Join(t.TempDir(), "keys")
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
	now := time.Now()
	keys := secret.Command("cat "+path, func() time.Time { return now })
	sealed := seal(t, keys, "plain", "row")
	musttest.Do(t, os.Remove(path)) // its output is kept
	if plain, err := keys.Open(sealed, "row"); err != nil || string(plain) != "plain" {
		t.Errorf("got %q and %v, want it opened", plain, err)
	}
	if plain, err := secret.Text("secret.key", text).Open(sealed, "row"); err != nil || string(plain) != "plain" {
		t.Errorf("the same keys as a text: got %q and %v, want it opened", plain, err)
	}
	now = now.Add(time.Hour)
	if plain, err := keys.Open(sealed, "row"); err != nil || string(plain) != "plain" {
		t.Errorf("a command that fails later: got %q and %v, want the keys of before", plain, err)
	}
	musttest.Do(t, os.WriteFile(path, []byte(secret.NewKey()), 0o600))
	for _, row := range []struct {
		after time.Duration
		want  error
	}{{30 * time.Second, nil}, {30 * time.Second, secret.ErrOtherKey}} {
		now = now.Add(row.after)
		if _, err := keys.Open(sealed, "row"); !errors.Is(err, row.want) {
			t.Errorf("%s after another key is there: got %v, want %v", row.after, err, row.want)
		}
	}
	musttest.Do(t, os.Remove(path))
	for command, want := range map[string]string{
		"cat " + path:              "No such file",
		"echo hello":               "must consist of keys",
		"true":                     "must have a key",
		"dmarcd-no-such-command x": "not found",
		"yes " + secret.NewKey():   "get the key: yes",
	} {
		if _, err := secret.Command(command, time.Now).Seal(nil, "row"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", command, err, want)
		}
	}
}
