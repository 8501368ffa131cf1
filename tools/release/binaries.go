package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// work is the folder of intermediate files below the results.
const work = "work"

// built are files that `make release` makes before it runs this program; `make build` can do
// without them, a release cannot.
var built = []string{"internal/web/built/charts.js", "bin/networks.mmdb", "bin/countries.mmdb"}

// binary returns the path of the program for a platform.
func (r *release) binary(p platform) string {
	name := "dmarcd"
	if p.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.out, work, p.os+"_"+p.arch, name)
}

// binaries builds the program for every platform, and packs each with its data and documents.
func (r *release) binaries(ctx context.Context) error {
	for _, file := range built {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s is missing; run `make release`, which needs npm for it", file)
		}
	}
	for _, p := range r.platforms {
		fmt.Printf("release: build %s/%s\n", p.os, p.arch)
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+r.version, //nolint:gosec // our own arguments
			"-o", r.binary(p), "./cmd/dmarcd")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+p.os, "GOARCH="+p.arch)
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build %s/%s: %w", p.os, p.arch, err)
		}
		if err := r.archive(p); err != nil {
			return err
		}
	}
	return nil
}

// archive packs what a user of a platform without packages needs.
func (r *release) archive(p platform) error {
	top := fmt.Sprintf("dmarcd-%s-%s-%s", r.version, p.os, p.arch)
	files := []file{
		{name: path.Join(top, filepath.Base(r.binary(p))), source: r.binary(p), mode: 0o755},
		{name: path.Join(top, "networks.mmdb"), source: "bin/networks.mmdb"},
		{name: path.Join(top, "countries.mmdb"), source: "bin/countries.mmdb"},
	}
	for _, document := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		files = append(files, file{name: path.Join(top, document), source: document})
	}
	if p.os == "linux" {
		files = append(files, file{name: path.Join(top, "dmarcd.service"), source: "deploy/dmarcd.service"})
	}
	if p.os == "windows" {
		return r.writeZip(r.path("%s.zip", top), files)
	}
	return r.writeTarGzip(r.path("%s.tar.gz", top), files)
}
