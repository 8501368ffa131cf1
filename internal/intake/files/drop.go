package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/intake"
)

// The folders below a drop folder that files are moved to.
const (
	folderDone    = "done"
	folderRefused = "refused"
)

// Drop reads the files that appear in a folder. A file is read once it has not changed
// between two looks, so that one that is still being written is left alone; hidden
// files and folders are. It is moved to the folder "done" below, or to "refused" where
// nothing in it is a report, after what was in it is kept. A file that cannot be read
// now stays, and is tried again.
type Drop struct {
	Folder   string
	Interval time.Duration
	Acceptor *intake.Acceptor
	// Team is the team whose Keeper stores the reports.
	Team   dmarcd.TeamID
	Keeper intake.Keeper
	Log    *slog.Logger
}

// Run looks at the folder every interval until ctx ends, and returns nil then. It
// returns an error if the folders cannot be made.
func (d *Drop) Run(ctx context.Context) error {
	for _, name := range []string{folderDone, folderRefused} {
		if err := os.MkdirAll(filepath.Join(d.Folder, name), 0o750); err != nil {
			return fmt.Errorf("create drop folder: %w", err)
		}
	}
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	before := make(map[string]File)
	for {
		now, err := d.look()
		if err != nil {
			d.Log.Error("could not read drop folder", "folder", d.Folder, "error", err)
		}
		for _, f := range now {
			if then, known := before[f.Path]; known && then.same(f) {
				d.take(ctx, f)
			}
		}
		before = make(map[string]File, len(now))
		for _, f := range now {
			before[f.Path] = f
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look returns the files in the folder, in the order of their names.
func (d *Drop) look() ([]File, error) {
	entries, err := os.ReadDir(d.Folder)
	if err != nil {
		return nil, err
	}
	var files []File
	for _, entry := range entries {
		if !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody took it away
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: filepath.Join(d.Folder, entry.Name()), Size: info.Size(), Modified: info.ModTime()})
	}
	return files, nil
}

// take has a file kept and moves it.
func (d *Drop) take(ctx context.Context, f File) {
	if ctx.Err() != nil {
		return
	}
	var unread error
	var refused string // the last reason
	kept, rejected := 0, 0
	importer := &Importer{Acceptor: d.Acceptor, Team: d.Team, Keeper: d.Keeper, Tell: func(r Result) {
		switch {
		case errors.Is(r.Err, dmarcd.ErrLimit):
			rejected++
			refused = r.Err.Error()
		case r.Err != nil:
			unread = r.Err
		}
		for _, receipt := range r.Receipts {
			if receipt.Status == dmarcd.Refused {
				rejected++
				refused = receipt.Reason
			} else {
				kept++
			}
		}
	}}
	err := importer.Run(ctx, []File{f})
	if err = errors.Join(err, unread); err != nil {
		if ctx.Err() == nil {
			d.Log.Error("could not read dropped file", "file", f.Path, "error", err)
		}
		return
	}
	to := folderDone
	if kept == 0 {
		to = folderRefused
	}
	if err := d.move(f.Path, to); err != nil {
		d.Log.Error("could not move dropped file", "file", f.Path, "error", err)
		return
	}
	d.Log.Info("dropped file imported", "file", f.Path, "stored", kept, "rejected", rejected, "reason", refused)
}

// move moves a file to a folder below, under a name that is free there.
func (d *Drop) move(path, folder string) error {
	name := filepath.Base(path)
	for number := 2; ; number++ {
		to := filepath.Join(d.Folder, folder, name)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(path, to)
		} else if err != nil {
			return err
		}
		name = fmt.Sprintf("%d-%s", number, filepath.Base(path))
	}
}
