package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd/internal/intake/files"
	"github.com/dmarcd/dmarcd/internal/musttest"
)

// write creates files in a folder, from pairs of path and content. A path that ends in a slash
// is a folder.
func write(t *testing.T, folder string, content ...string) {
	t.Helper()
	for i := 0; i < len(content); i += 2 {
		path := filepath.Join(folder, filepath.FromSlash(content[i]))
		parent := path
		if !strings.HasSuffix(content[i], "/") {
			parent = filepath.Dir(path)
		}
		musttest.Do(t, os.MkdirAll(parent, 0o700))
		if parent == path {
			continue
		}
		musttest.Do(t, os.WriteFile(path, []byte(content[i+1]), 0o600))
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder,
		"b.xml", "bb", "a.xml", "a", "sub/z.gz", "zzz", "sub/y.eml", "", ".hidden.xml", "x", ".git/config", "x",
		"mail/cur/2:2,S", "22", "mail/new/1", "1", "mail/tmp/3", "333", "mail/dovecot-uidlist", "x",
		"mail/.Sent/cur/5", "5", "mail/.Sent/new/", "", "mail/.Sent/tmp/", "", "mail/.notes/cur/6", "6",
		"cur/tmp/7", "7")
	musttest.Do(t, os.Symlink(folder, filepath.Join(folder, "sub", "again")))
	musttest.Do(t, os.Symlink(filepath.Join(folder, "a.xml"), filepath.Join(folder, "sub", "link.xml")))
	everything := []string{"a.xml", "b.xml", "cur/tmp/7", "mail/.Sent/cur/5", "mail/cur/2:2,S", "mail/new/1", "sub/y.eml", "sub/z.gz"}
	for _, tt := range []struct {
		name  string
		paths []string
		want  []string
		bytes int64
	}{
		{"a folder", []string{"."}, everything, 11},
		{"a file", []string{"b.xml"}, []string{"b.xml"}, 2},
		{"in the order of the arguments", []string{"sub", "b.xml", "a.xml"}, []string{"sub/y.eml", "sub/z.gz", "b.xml", "a.xml"}, 6},
		{"nothing twice", []string{"b.xml", ".", "sub/../b.xml"}, append([]string{"b.xml"}, without(everything, "b.xml")...), 11},
		{"a Maildir", []string{"mail"}, []string{"mail/.Sent/cur/5", "mail/cur/2:2,S", "mail/new/1"}, 4},
		{"what is named is read, hidden or not", []string{".hidden.xml", "mail/tmp/3", "sub/link.xml"}, []string{".hidden.xml", "mail/tmp/3", "sub/link.xml"}, 5},
		{"a hidden folder that is named", []string{".git"}, []string{".git/config"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			for _, p := range tt.paths {
				paths = append(paths, filepath.Join(folder, p))
			}
			got := files.List(paths...)
			if diff := cmp.Diff(tt.want, relative(t, folder, got.Files)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if got.Bytes != tt.bytes || len(got.Unread) != 0 {
				t.Errorf("got %d bytes and %v unread, want %d and none", got.Bytes, got.Unread, tt.bytes)
			}
		})
	}
}

func TestListReportsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "a.xml", "a")
	got := files.List(filepath.Join(folder, "missing"), os.DevNull, folder)
	if len(got.Files) != 1 || len(got.Unread) != 2 {
		t.Errorf("got %v and %v, want one file and two that cannot be read", got.Files, got.Unread)
	}
}

func relative(t *testing.T, folder string, list []files.File) []string {
	t.Helper()
	var paths []string
	for _, f := range list {
		path := musttest.Get(filepath.Rel(folder, f.Path))(t)
		paths = append(paths, filepath.ToSlash(path))
	}
	return paths
}

func without(list []string, one string) []string {
	var rest []string
	for _, s := range list {
		if s != one {
			rest = append(rest, s)
		}
	}
	return rest
}
