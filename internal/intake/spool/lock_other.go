//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spool

import "os"

// lockFile only opens the file: locking is not implemented on this system.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the spool folder
}
