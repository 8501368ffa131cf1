// Command release builds all files of a release from the checked-out commit: binaries,
// packages, the container image, the chart, the monitoring files, an SBOM and the checksums. It
// runs `go build`, but needs neither root nor a container engine. Publishing is left to the
// operator.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// allPlatforms are built unless -platforms names others.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// A release is what the steps of this program share. The current folder is the repository.
type release struct {
	version   string    // a semantic version without v
	at        time.Time // of the commit; the time of every file in every archive
	out       string    // folder of the results
	platforms []platform
}

type platform struct{ os, arch string }

func main() {
	out := flag.String("o", "dist", "folder of the results, which is emptied first")
	platforms := flag.String("platforms", allPlatforms, "comma-separated platforms, each os/arch")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out, *platforms)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out, platforms string) error {
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	r, err := describe(ctx, out, platforms)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(filepath.Join(out, work), 0o755)); err != nil { //nolint:gosec // for others to read
		return err
	}
	for _, step := range []func(context.Context) error{r.binaries, r.packages, r.image, r.chart, r.monitoring, r.sbom, r.checksums} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("release: %s is in %s\n", r.version, r.out)
	return os.RemoveAll(filepath.Join(out, work))
}

// describe names the release after the tag v1.2.3 of the commit. A commit without one gets a
// version that sorts by its time and before every tag: 0.0.0-20261116005437.g62e049d.
func describe(ctx context.Context, out, platforms string) (*release, error) {
	stamp, err := git(ctx, "log", "-1", "--format=%cI")
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return nil, err
	}
	version, err := git(ctx, "tag", "--points-at", "HEAD", "--list", "v[0-9]*")
	if err != nil {
		return nil, err
	}
	version, _, _ = strings.Cut(version, "\n")
	version = strings.TrimPrefix(version, "v")
	if version == "" {
		hash, err := git(ctx, "rev-parse", "--short=7", "HEAD")
		if err != nil {
			return nil, err
		}
		version = "0.0.0-" + at.UTC().Format("20060102150405") + ".g" + hash
	}
	changes, err := git(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		separator := "-"
		if strings.Contains(version, "-") {
			separator = "."
		}
		version += separator + "dirty"
		fmt.Fprintln(os.Stderr, "release: the tree has changes, so that this release cannot be made again")
	}
	r := &release{version: version, at: at.UTC(), out: out}
	for name := range strings.SplitSeq(platforms, ",") {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("platform %q: want os/arch", name)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	return r, nil
}

// git returns the output of a git command without the final line feed.
func git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", args...).Output() //nolint:gosec // our own arguments
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(output)), nil
}

// path returns the path of a result.
func (r *release) path(format string, args ...any) string {
	return filepath.Join(r.out, fmt.Sprintf(format, args...))
}

// A file goes into an archive. Owner, mode and time depend on the release only, so that the
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
