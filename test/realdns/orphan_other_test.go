//go:build !linux

package realdns_test

import "syscall"

// dieWithParent does nothing: only Linux ends a process with its parent.
func dieWithParent(*syscall.SysProcAttr) {}
