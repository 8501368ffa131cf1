package spool

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// file is what a draft needs of a file.
type file interface {
	io.WriteCloser
	Sync() error
}

// disk is what can fail for want of room, or because the medium is broken. Tests put
// in its place what fails on purpose.
type disk struct {
	create     func(path string) (file, error)
	rename     func(from, to string) error
	syncFolder func(path string) error
	// freeBytes returns how much can still be written to the disk of a folder.
	freeBytes func(folder string) (int64, error)
}

func realDisk() disk {
	return disk{create: createFile, rename: os.Rename, syncFolder: syncFolder, freeBytes: FreeBytes}
}

// createFile makes a file that only we can read: mails hold addresses.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the path is of our making
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the path is of our making
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// isFull reports whether an error says that the disk, or our share of it, is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
