package daemon

import "syscall"

// DieWithParent has the kernel kill a process when the test process is gone:
// one that panics or runs out of time ends without its cleanups.
func DieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
