package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A file goes into an archive. Owner, mode and time depend on the release alone, so that the
// same commit gives the same bytes.
type file struct {
	name   string
	source string // path of the content
	text   []byte // content, where source is empty
	mode   int64  // 0 = 0644
	folder bool
	owner  int // uid and gid
}

func (f file) content() ([]byte, error) {
	if f.source == "" {
		return f.text, nil
	}
	return os.ReadFile(f.source)
}

// writeTar writes the files in their order.
func (r *release) writeTar(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, ModTime: r.at, Uid: f.owner, Gid: f.owner, Format: tar.FormatPAX}
		if f.mode == 0 {
			header.Mode = 0o644
		}
		var content []byte
		if f.folder {
			header.Typeflag, header.Name = tar.TypeDir, f.name+"/"
		} else {
			var err error
			if content, err = f.content(); err != nil {
				return err
			}
			header.Size = int64(len(content))
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func (r *release) writeTarGzip(name string, files []file) error {
	return create(name, func(w io.Writer) error {
		packed := gzip.NewWriter(w)
		return errors.Join(r.writeTar(packed, files), packed.Close())
	})
}

func (r *release) writeZip(name string, files []file) error {
	return create(name, func(w io.Writer) error {
		archive := zip.NewWriter(w)
		for _, f := range files {
			content, err := f.content()
			if err != nil {
				return err
			}
			member, err := archive.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.at})
			if err != nil {
				return err
			}
			if _, err := member.Write(content); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

// create makes a file and removes it again if write fails.
func create(name string, write func(io.Writer) error) error {
	f, err := os.Create(name) //nolint:gosec // a result
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", filepath.Base(name), err), os.Remove(name))
	}
	return nil
}

// checksums writes SHA256SUMS, which `sha256sum --check` reads.
func (r *release) checksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		f, err := os.Open(r.path("%s", entry.Name()))
		if err != nil {
			return err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, f); err != nil {
			return errors.Join(err, f.Close())
		}
		_ = f.Close() // read-only
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), entry.Name())
	}
	return os.WriteFile(r.path("SHA256SUMS"), []byte(sums.String()), 0o644) //nolint:gosec // for others to read
}
