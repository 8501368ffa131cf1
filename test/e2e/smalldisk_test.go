package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/test/daemon"
)

// smallDisk is a disk that can be filled. It is a mounted file system if the test may
// mount one; otherwise it is a file size limit of the process.
type smallDisk struct {
	in      *installation
	folder  string
	mounted bool
}

// onSmallDisk moves the data folder and the SQLite database to a small disk. Call it
// before anything is written.
func (in *installation) onSmallDisk() *smallDisk {
	in.t.Helper()
	d := &smallDisk{in: in, folder: in.t.TempDir()}
	if in.db.Engine == "sqlite" {
		d.folder = filepath.Dir(in.db.DSN)
	}
	in.data = filepath.Join(d.folder, "data")
	if os.Geteuid() == 0 {
		d.mounted = exec.Command("mount", "-t", "tmpfs", "-o", "size=1g,mode=700", "dmarcd", d.folder).Run() == nil
	}
	if d.mounted {
		in.t.Cleanup(func() { d.run("umount", d.folder) })
	}
	return d
}

// fill fills the disk.
func (d *smallDisk) fill(s *server) {
	d.in.t.Helper()
	if !d.mounted {
		d.run("prlimit", fmt.Sprintf("--pid=%d", s.PID()), "--fsize=1:unlimited")
		return
	}
	daemon.Eventually(d.in.t, daemon.StartLimit, "the disk is as small as what is on it", func() bool {
		var state syscall.Statfs_t
		musttest.Do(d.in.t, syscall.Statfs(d.folder, &state))
		used := (state.Blocks - state.Bfree) * uint64(state.Bsize)
		// This fails if something was written meanwhile. A size of 0 would mean no limit.
		return d.resize(max(used, uint64(os.Getpagesize()))) == nil
	})
}

// empty frees space again.
func (d *smallDisk) empty(s *server) {
	d.in.t.Helper()
	if !d.mounted {
		d.run("prlimit", fmt.Sprintf("--pid=%d", s.PID()), "--fsize=unlimited:unlimited")
		return
	}
	musttest.Do(d.in.t, d.resize(1<<30))
}

func (d *smallDisk) resize(bytes uint64) error {
	output, err := exec.Command("mount", "-o", fmt.Sprintf("remount,size=%d", bytes), d.folder).CombinedOutput()
	if err != nil {
		return fmt.Errorf("resize the disk: %w: %s", err, output)
	}
	return nil
}

func (d *smallDisk) run(name string, args ...string) {
	d.in.t.Helper()
	if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.in.t.Errorf("%s: %v: %s", name, err, output)
	}
}
