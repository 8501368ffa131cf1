// Package files brings reports in from files: those that an operator names to be
// imported, with all folders, Maildirs and mailboxes among them, and those that appear
// in a drop folder. What a file holds is found out by package intake; how deliveries
// are kept is left to its Keeper.
//
// Files are only read, and moved within the drop folder. None is ever deleted.
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
	// Path leads to it, as it was named or found.
	Path string
	Size int64
	// Modified is when its content changed last.
	Modified time.Time
}

// same reports whether g is the same file with the same content, as far as can be told
// without reading it.
func (f File) same(g File) bool {
	return f.Path == g.Path && f.Size == g.Size && f.Modified.Equal(g.Modified)
}

// Listing is what was found.
type Listing struct {
	// Files are in the order of the paths they were found under, and in a folder in
	// that of their names.
	Files []File
	// Bytes is the sum of their sizes.
	Bytes int64
	// Unread tells of each path that could not be looked at.
	Unread []error
}

// List finds the files that some paths stand for: a file stands for itself, a folder
// for all files in it and below. Of those in a folder it passes over hidden ones, and
// symbolic links, which may lead anywhere. Of a Maildir it takes the mails in cur and
// new and those of its subfolders. A file that is found twice is listed once.
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

// file adds a file.
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

// folder adds what is in a folder.
func (l *lister) folder(path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.Unread = append(l.Unread, err)
		// What was read before the error is taken.
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

// isMaildir reports whether a folder with these entries is a Maildir: the folders cur,
// new and tmp make it one.
func isMaildir(entries []fs.DirEntry) bool {
	found := 0
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && (name == "cur" || name == "new" || name == "tmp") {
			found++
		}
	}
	return found == 3
}

// ofMaildir reports whether an entry of a Maildir holds mails. What is in tmp is not
// complete; the files beside the folders are the mail server's own. Subfolders begin
// with a dot (Maildir++), and are Maildirs themselves.
func ofMaildir(path string, entry fs.DirEntry) bool {
	switch name := entry.Name(); {
	case !entry.IsDir() || name == "tmp":
		return false
	case strings.HasPrefix(name, "."):
		inner, err := os.ReadDir(path)
		return err != nil || isMaildir(inner) // an error comes back when it is read
	default:
		return true
	}
}
