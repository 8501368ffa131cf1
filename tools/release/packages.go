package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/rpm"
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

// packagers make the packages of Linux systems.
var packagers = map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM}

// packages makes a package for each packager and architecture of Linux.
func (r *release) packages(ctx context.Context) error {
	manuals := filepath.Join(r.out, work, "man")
	if err := r.manuals(ctx, manuals); err != nil {
		return err
	}
	unit, err := packageUnit()
	if err != nil {
		return err
	}
	unitFile := filepath.Join(r.out, work, "dmarcd.service")
	if err := os.WriteFile(unitFile, unit, 0o644); err != nil { //nolint:gosec // part of a package
		return err
	}
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		for format, packager := range packagers {
			variables := map[string]string{"VERSION": r.version, "ARCH": p.arch, "BINARY": r.binary(p), "UNIT": unitFile, "MANUALS": manuals}
			config, err := nfpm.ParseFileWithEnvMapping("deploy/packages/nfpm.yaml", func(name string) string { return variables[name] })
			if err != nil {
				return err
			}
			config.MTime = r.at
			info, err := config.Get(format)
			if err != nil {
				return err
			}
			info = nfpm.WithDefaults(info)
			name := packager.ConventionalFileName(info)
			fmt.Printf("release: package %s\n", name)
			if err := create(r.path("%s", name), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// manuals writes the compressed manual pages of all commands into a folder. Versions without the
// command man have none.
func (r *release) manuals(ctx context.Context, folder string) error {
	if _, err := os.Stat("cmd/dmarcd/man.go"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	write := exec.CommandContext(ctx, "go", "run", "-ldflags", "-X main.version="+r.version, "./cmd/dmarcd", "man", folder) //nolint:gosec // our own arguments
	write.Stderr = os.Stderr
	if err := write.Run(); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(folder, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page) //nolint:gosec // was just written
		if err != nil {
			return err
		}
		if err := create(page+".gz", func(w io.Writer) error {
			zip := gzip.NewWriter(w) // without name and time, so that the bytes are the same again
			_, err := zip.Write(text)
			return errors.Join(err, zip.Close())
		}); err != nil {
			return err
		}
	}
	return nil
}

// packageUnit returns the systemd unit for packages: with their paths, their settings file, and
// the user that they create, because commands need that user too.
func packageUnit() ([]byte, error) {
	text, err := os.ReadFile("deploy/dmarcd.service")
	if err != nil {
		return nil, err
	}
	_, unit, found := strings.Cut(string(text), "[Unit]\n")
	if !found {
		return nil, fmt.Errorf("deploy/dmarcd.service has no [Unit]")
	}
	unit = "[Unit]\nDocumentation=file:/usr/share/doc/dmarcd/README.md\n" + unit
	for _, change := range [][2]string{
		{"ExecStart=/usr/local/bin/dmarcd serve\n", "ExecStart=/usr/bin/dmarcd serve --config /etc/dmarcd/dmarcd.toml\n"},
		{"Environment=DMARCD_DATA=%S/dmarcd\n", ""},
		{"DynamicUser=yes\n", "Group=dmarcd\n"},
	} {
		if strings.Count(unit, change[0]) != 1 {
			return nil, fmt.Errorf("deploy/dmarcd.service: want the line %q once", change[0])
		}
		unit = strings.Replace(unit, change[0], change[1], 1)
	}
	return []byte(unit), nil
}

// chart packs the Helm chart with the version of the release.
func (r *release) chart(context.Context) error {
	files, err := tree("deploy/helm/dmarcd", "dmarcd")
	if err != nil {
		return err
	}
	for i, f := range files {
		if f.name != "dmarcd/Chart.yaml" {
			continue
		}
		text, err := f.content()
		if err != nil {
			return err
		}
		if bytes.Count(text, []byte("0.0.0-dev")) != 2 {
			return errors.New("deploy/helm/dmarcd/Chart.yaml: want the version 0.0.0-dev twice")
		}
		files[i].source, files[i].text = "", bytes.ReplaceAll(text, []byte("0.0.0-dev"), []byte(r.version))
	}
	return r.writeTarGzip(r.path("dmarcd-chart-%s.tgz", r.version), files)
}

// monitoring copies the dashboard and the alert rules.
func (r *release) monitoring(context.Context) error {
	for _, name := range []string{"grafana-dashboard.json", "prometheus-rules.yaml"} {
		text, err := os.ReadFile(path.Join("deploy/monitoring", name)) //nolint:gosec // a file of the repository
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.path("dmarcd-%s", name), text, 0o644); err != nil { //nolint:gosec // for others to read
			return err
		}
	}
	return nil
}

// user owns the data folder of the image.
const user = 65532

// image writes an OCI archive with an image for each architecture of Linux. It is the image of
// deploy/Dockerfile; scripts/test-image.sh compares them.
func (r *release) image(context.Context) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		img, err := r.platformImage(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	folder := filepath.Join(r.out, work, "image")
	archive, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := archive.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	files, err := tree(folder, "")
	if err != nil {
		return err
	}
	return create(r.path("dmarcd-%s.oci.tar", r.version), func(w io.Writer) error { return r.writeTar(w, files) })
}

func (r *release) platformImage(p platform) (v1.Image, error) {
	var content bytes.Buffer
	if err := r.writeTar(&content, []file{
		{name: "dmarcd", source: r.binary(p), mode: 0o755},
		{name: "networks.mmdb", source: "bin/networks.mmdb"},
		{name: "countries.mmdb", source: "bin/countries.mmdb"},
		{name: "data", folder: true, mode: 0o755, owner: user},
	}); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, layer); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.at},
		RootFS: rootFS(layer),
		Config: v1.Config{
			Env:          []string{"DMARCD_DATA=/data", "DMARCD_LISTEN=0.0.0.0:8080"},
			User:         fmt.Sprintf("%d:%d", user, user),
			Volumes:      map[string]struct{}{"/data": {}},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Entrypoint:   []string{"/dmarcd"},
			Cmd:          []string{"serve"},
			Labels: map[string]string{
				"org.opencontainers.image.title":    "dmarcd",
				"org.opencontainers.image.version":  r.version,
				"org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
	})
}

func rootFS(layer v1.Layer) v1.RootFS {
	id, err := layer.DiffID()
	if err != nil {
		panic(err) // the layer is in memory
	}
	return v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{id}}
}

// tree returns the files below a folder, in the order of their names.
func tree(folder, prefix string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		files = append(files, file{name: filepath.ToSlash(filepath.Join(prefix, relative)), source: name})
		return err
	})
	return files, err
}
