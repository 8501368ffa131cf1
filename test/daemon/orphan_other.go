//go:build !linux

package daemon

import "syscall"

// DieWithParent does nothing: only Linux supports it.
func DieWithParent(*syscall.SysProcAttr) {}
