package adversary_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// unpack returns a content as it is, or what it has in gzip.
func unpack(t testing.TB, content []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return string(content)
	}
	plain := musttest.Get(io.ReadAll(r))(t)
	return string(plain)
}

// files returns the content of every file of the installation.
func (a *arena) files() map[string]string {
	a.t.Helper()
	found := map[string]string{}
	for _, folder := range a.folders() {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			found[path] = string(content)
			return err
		})
		musttest.Do(a.t, err)
	}
	return found
}

// folders returns the data folder, and that of the database where it is a file.
func (a *arena) folders() []string {
	folders := []string{a.data}
	for _, setting := range a.in.Settings {
		if file, found := strings.CutPrefix(setting, "DMARCD_DATABASE="); found && !strings.HasPrefix(file, "postgres") {
			folders = append(folders, filepath.Dir(file))
		}
	}
	return folders
}

// used returns how many bytes the files of the installation have.
func (a *arena) used() int64 {
	a.t.Helper()
	sum := int64(0)
	for _, folder := range a.folders() {
		err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // the daemon removes files meanwhile
			}
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
			return nil
		})
		musttest.Do(a.t, err)
	}
	return sum
}
