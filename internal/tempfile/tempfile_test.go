package tempfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/tempfile"
)

// TestNothingIsLeft writes a file, and finds one that a crash left.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "dmarcd-tmp-1"), nil, 0o600))
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "another"), nil, 0o600))
	musttest.Do(t, tempfile.RemoveLeftovers(folder))
	file := musttest.Get(tempfile.Create(folder))(t)
	musttest.Get(file.WriteString("text"))(t)
	read := make([]byte, 4)
	if _, err := file.ReadAt(read, 0); err != nil || string(read) != "text" {
		t.Errorf("got %q, %v, want what was written", read, err)
	}
	tempfile.Discard(file)
	tempfile.Discard(nil)
	if left := musttest.Get(os.ReadDir(folder))(t); len(left) != 1 || left[0].Name() != "another" {
		t.Errorf("got %v, want the file of others alone", left)
	}
	if err := tempfile.RemoveLeftovers(filepath.Join(folder, "missing")); err == nil {
		t.Error("a missing folder: got no error")
	}
	if _, err := tempfile.Create(filepath.Join(folder, "missing")); err == nil {
		t.Error("a file in a missing folder: got no error")
	}
	musttest.Do(t, tempfile.RemoveLeftovers(""))
}
