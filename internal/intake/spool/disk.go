package spool

import (
	"errors"
	"io"
	"os"
	"syscall"
)

type file interface {
	io.WriteCloser
	Sync() error
}

// disk contains the file operations that fail on a full or broken disk. Tests replace
// them to inject errors.
type disk struct {
	create     func(path string) (file, error)
	rename     func(from, to string) error
	syncFolder func(path string) error
	freeBytes  func(folder string) (int64, error) // see FreeBytes
}

func realDisk() disk {
	return disk{create: createFile, rename: os.Rename, syncFolder: syncFolder, freeBytes: FreeBytes}
}

// createFile creates a file that only its owner can read: messages contain addresses.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the spool folder
}

// syncFolder makes new and renamed files in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the spool folder or its parent
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// isFull reports whether the disk is full or a disk quota is exceeded.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
