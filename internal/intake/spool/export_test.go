package spool

import "os"

// Faults are injected disk errors. The zero value injects none.
type Faults struct {
	// FullDevice replaces new files by /dev/full.
	FullDevice bool
	// Sync, Rename and SyncFolder are the errors of these operations.
	Sync       error
	Rename     error
	SyncFolder error
	// FreeBytes replaces the free disk space unless it is nil.
	FreeBytes *int64
}

// OpenFaulty opens a spool with injected disk errors. The caller may change them while no
// method of the spool runs.
func OpenFaulty(config Config, faults *Faults) (*Spool, error) {
	d := realDisk()
	d.create = func(path string) (file, error) {
		f, err := createFile(path)
		if err != nil {
			return nil, err
		}
		if faults.FullDevice {
			_ = f.Close() // empty; the file stays, as a draft does
			return os.OpenFile("/dev/full", os.O_WRONLY, 0)
		}
		return faultyFile{f, faults}, nil
	}
	d.rename = func(from, to string) error {
		if faults.Rename != nil {
			return faults.Rename
		}
		return os.Rename(from, to)
	}
	d.syncFolder = func(path string) error {
		if faults.SyncFolder != nil {
			return faults.SyncFolder
		}
		return syncFolder(path)
	}
	d.freeBytes = func(folder string) (int64, error) {
		if faults.FreeBytes != nil {
			return *faults.FreeBytes, nil
		}
		return FreeBytes(folder)
	}
	return open(config, d)
}

type faultyFile struct {
	file
	faults *Faults
}

func (f faultyFile) Sync() error {
	if f.faults.Sync != nil {
		return f.faults.Sync
	}
	return f.file.Sync()
}
