package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
