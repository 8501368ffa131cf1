package daemon

import "syscall"

// dieWithParent has the kernel kill the daemon when the test process is gone:
// one that panics or runs out of time ends without its cleanups.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
