//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock waits for an exclusive lock on a file.
func lock(name string) (unlock func() error, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
	}
	return file.Close, nil
}
