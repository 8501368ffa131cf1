// Package files imports reports from files: those that an operator names, including folders,
// Maildirs and mboxes, and those that appear in a drop folder. Package intake reads the files,
// and its DeliveryStore stores the reports.
//
// Files are never changed or deleted. Only those in the drop folder are moved.
package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file that was found. It may have changed since.
type File struct {
	// Path is the path as given or found.
	Path     string
	Size     int64
	Modified time.Time
}

// same reports whether g has the same path, size and modification time.
func (f File) same(g File) bool {
	return f.Path == g.Path && f.Size == g.Size && f.Modified.Equal(g.Modified)
}

// Listing is the result of List.
type Listing struct {
	// Files are in the order of the given paths; within a folder they are sorted by name.
	Files []File
	// Bytes is the total size.
	Bytes int64
	// Unread holds an error for each path that could not be read.
	Unread []error
}

// List finds the files that paths stand for: a file for itself, a folder for all files below
// it, without hidden files and symbolic links. Of a Maildir and its subfolders it returns the
// mails in cur and new. A file is listed once.
func List(paths ...string) Listing {
	l := lister{seen: make(map[string]bool)}
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			l.Unread = append(l.Unread, err)
		case info.IsDir():
			l.folder(path)
		case info.Mode().IsRegular():
			l.file(path, info)
		default:
			l.Unread = append(l.Unread, fmt.Errorf("%s is neither a file nor a folder", path))
		}
	}
	return l.Listing
}

type lister struct {
	Listing

	seen map[string]bool // by absolute path
}

func (l *lister) file(path string, info fs.FileInfo) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		l.Unread = append(l.Unread, err)
		return
	}
	if l.seen[absolute] {
		return
	}
	l.seen[absolute] = true
	l.Files = append(l.Files, File{Path: path, Size: info.Size(), Modified: info.ModTime()})
	l.Bytes += info.Size()
}

func (l *lister) folder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.Unread = append(l.Unread, err)
		// Use the entries read before the error.
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	maildir := isMaildir(entries)
	for _, entry := range entries {
		inner := filepath.Join(path, entry.Name())
		switch {
		case maildir && !ofMaildir(inner, entry):
		case !maildir && strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			l.folder(inner)
		case entry.Type().IsRegular():
			info, err := entry.Info()
			if err != nil {
				l.Unread = append(l.Unread, err)
				continue
			}
			l.file(inner, info)
		}
	}
}

// isMaildir reports whether entries include the folders cur, new and tmp.
func isMaildir(entries []fs.DirEntry) bool {
	found := 0
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && (name == "cur" || name == "new" || name == "tmp") {
			found++
		}
	}
	return found == 3
}

// ofMaildir reports whether an entry of a Maildir contains mail. Messages in tmp are
// incomplete, and other files belong to the mail server. Subfolders start with a dot
// (Maildir++) and are Maildirs.
func ofMaildir(path string, entry fs.DirEntry) bool {
	switch name := entry.Name(); {
	case !entry.IsDir() || name == "tmp":
		return false
	case strings.HasPrefix(name, "."):
		inner, err := os.ReadDir(path)
		return err != nil || isMaildir(inner) // reading it reports the error
	default:
		return true
	}
}
