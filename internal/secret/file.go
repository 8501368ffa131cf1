package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// exposed are the permissions with which others could read or replace the keys. Group
// read access is allowed: orchestrators use it to pass secrets to a process.
const exposed = 0o027

// File returns the keys in a file. Subkey creates it with a random key, readable only by the owner. If
// several processes do so concurrently, one succeeds and all use its key.
func File(path string) *Keys {
	return &Keys{
		source: path,
		read:   func() (string, error) { return readFile(path) },
		create: func() error { return writeFile(path, NewKey()+"\n", os.Link) },
	}
}

// AddKey puts a random key before those of the file, so that it encrypts from now on.
func AddKey(path string) error {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = "", nil
	}
	if err == nil {
		err = writeFile(path, NewKey()+"\n"+text, os.Rename)
	}
	return err
}

func readFile(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the operator's own path
	if err != nil {
		return "", fmt.Errorf("read the key file: %w; restore it from a backup", err)
	}
	defer func() { _ = file.Close() }() // read-only
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	if info.Mode().Perm()&exposed != 0 {
		return "", fmt.Errorf("the key file %s is accessible to other users (%v); run `chmod 600 %s`", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeys))
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	return string(text), nil
}

// writeFile writes a temporary file and puts it at the path, which is atomic. Put is os.Rename, or
// os.Link, which leaves a file alone that is there or was created concurrently.
func writeFile(path, text string, put func(from, to string) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".key-") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // the temporary name
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := put(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the directory entry of a new file durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder) //nolint:gosec // the operator's own path
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
