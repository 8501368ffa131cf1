//go:build !linux

package daemon

import "syscall"

// DieWithParent does nothing: only Linux can.
func DieWithParent(*syscall.SysProcAttr) {}
