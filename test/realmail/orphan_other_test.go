//go:build !linux

package realmail_test

import "syscall"

// dieWithParent does nothing: only Linux ends a process with its parent.
func dieWithParent(*syscall.SysProcAttr) {}
