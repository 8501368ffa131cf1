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

// Subfolders of the drop folder for processed files.
const (
	folderDone     = "done"
	folderRejected = "rejected"
)

// Drop imports files that appear in a folder. A file is read once its size and time are the
// same in two polls, so that half-written files are left alone. Hidden files and folders are
// ignored. After a commit the file moves to the subfolder "done", or to "rejected" if it
// contains no report. A file that cannot be read stays and is retried.
type Drop struct {
	Folder   string
	Interval time.Duration
	Acceptor *intake.Acceptor
	// Team is the team that receives the reports.
	Team  dmarcd.TeamID
	Store intake.DeliveryStore
	Log   *slog.Logger
}

// Run polls the folder every interval until ctx ends, then returns nil. It returns an error if
// the subfolders cannot be created.
func (d *Drop) Run(ctx context.Context) error {
	for _, name := range []string{folderDone, folderRejected} {
		if err := os.MkdirAll(filepath.Join(d.Folder, name), 0o750); err != nil {
			return fmt.Errorf("create drop folder: %w", err)
		}
	}
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	before := make(map[string]File)
	for {
		now, err := d.list()
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

// list returns the files in the folder, sorted by name.
func (d *Drop) list() ([]File, error) {
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
			continue // removed since the directory was read
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{Path: filepath.Join(d.Folder, entry.Name()), Size: info.Size(), Modified: info.ModTime()})
	}
	return files, nil
}

// take imports a file and moves it.
func (d *Drop) take(ctx context.Context, f File) {
	if ctx.Err() != nil {
		return
	}
	var unread error
	var reason string // of the last rejection
	stored, rejected := 0, 0
	importer := &Importer{Acceptor: d.Acceptor, Team: d.Team, Store: d.Store, OnResult: func(r Result) {
		var full *dmarcd.QuotaError
		switch {
		case errors.As(r.Err, &full):
			unread = r.Err
		case errors.Is(r.Err, dmarcd.ErrLimit):
			rejected++
			reason = r.Err.Error()
		case r.Err != nil:
			unread = r.Err
		}
		for _, receipt := range r.Receipts {
			if receipt.Status == dmarcd.StatusRejected {
				rejected++
				reason = receipt.Reason
			} else {
				stored++
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
	if stored == 0 {
		to = folderRejected
	}
	if err := d.move(f.Path, to); err != nil {
		d.Log.Error("could not move dropped file", "file", f.Path, "error", err)
		return
	}
	d.Log.Info("dropped file imported", "file", f.Path, "stored", stored, "rejected", rejected, "reason", reason)
}

// move moves a file to a subfolder, under a name that is not taken.
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
