package spool

import "os"

// Faults are what a disk does wrong. The zero value is a disk without fault.
type Faults struct {
	// FullDevice has every file be one on a device that is full.
	FullDevice bool
	Sync       error
	Rename     error
	SyncFolder error
	FreeBytes  *int64
}

// OpenFaulty opens a spool on a disk that has faults. They can be changed while no
// other method runs.
func OpenFaulty(config Config, faults *Faults) (*Spool, error) {
	d := realDisk()
	d.create = func(path string) (file, error) {
		f, err := createFile(path)
		if err != nil {
			return nil, err
		}
		if faults.FullDevice {
			_ = f.Close() // its name stays, as that of a draft does
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
