package spool

import "syscall"

// FreeBytes returns the disk space available to unprivileged users in a folder.
func FreeBytes(folder string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return int64(disk.Bavail) * disk.Bsize, nil //nolint:gosec // no disk has 2^63 bytes
}
