//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spool

import "os"

// lockFile opens a file. On this system nothing keeps a second process away.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path is of our making
}
