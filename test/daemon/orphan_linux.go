package daemon

import "syscall"

// DieWithParent makes the kernel kill a process when the test process ends: after a panic
// or a timeout, cleanups do not run.
func DieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
