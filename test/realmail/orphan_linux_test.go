package realmail_test

import "syscall"

// dieWithParent has the kernel kill a server when the test process is gone: one
// that panics or runs out of time ends without its cleanups.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
