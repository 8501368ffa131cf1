//go:build !linux

package daemon

import "syscall"

// dieWithParent does nothing: only Linux can.
func dieWithParent(*syscall.SysProcAttr) {}
