package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// npmLocks name the npm packages whose content is in a release.
var npmLocks = []string{"internal/web/charts/package-lock.json", "internal/senders/networks/package-lock.json"}

// sbom writes what a release is made of, as CycloneDX: the Go modules that the linker put into
// the binaries, the Go release with its standard library, and the npm packages of the web
// interface and of the databases of networks.
func (r *release) sbom(context.Context) error {
	parts := make(map[string]cyclonedx.Component)
	for _, p := range r.platforms {
		info, err := buildinfo.ReadFile(r.binary(p))
		if err != nil {
			return err
		}
		add(parts, "pkg:golang/std", strings.TrimPrefix(info.GoVersion, "go"), "BSD-3-Clause")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(parts, "pkg:golang/"+m.Path, m.Version, "")
		}
	}
	for _, name := range npmLocks {
		if err := addLock(parts, name); err != nil {
			return err
		}
	}
	components := slices.SortedFunc(maps.Values(parts), func(a, b cyclonedx.Component) int { return cmp.Compare(a.PackageURL, b.PackageURL) })
	self := cyclonedx.Component{
		BOMRef: "pkg:golang/github.com/dmarcd/dmarcd@v" + r.version, Type: cyclonedx.ComponentTypeApplication, Name: "dmarcd", Version: r.version,
		PackageURL: "pkg:golang/github.com/dmarcd/dmarcd@v" + r.version, Licenses: licence("Apache-2.0"),
	}
	direct := make([]string, 0, len(components))
	for _, c := range components {
		direct = append(direct, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	seed := sha256.Sum256([]byte(r.version))
	seed[6], seed[8] = seed[6]&0x0f|0x80, seed[8]&0x3f|0x80 // RFC 9562 §5.8
	bom.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", seed[:4], seed[4:6], seed[6:8], seed[8:10], seed[10:16])
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.at.Format(time.RFC3339), Component: &self}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &direct}}
	return create(r.path("dmarcd-%s.cdx.json", r.version), func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	})
}

func add(parts map[string]cyclonedx.Component, name, version, license string) {
	url := name + "@" + version
	parts[url] = cyclonedx.Component{
		BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: strings.TrimPrefix(name, name[:strings.Index(name, "/")+1]),
		Version: version, PackageURL: url, Licenses: licence(license),
	}
}

// licence returns nil if id, of SPDX or a text of words, is empty.
func licence(id string) *cyclonedx.Licenses {
	switch {
	case id == "":
		return nil
	case strings.Contains(id, " "):
		return &cyclonedx.Licenses{{License: &cyclonedx.License{Name: id}}}
	}
	return &cyclonedx.Licenses{{License: &cyclonedx.License{ID: id}}}
}

// addLock adds the packages of an npm lock file.
func addLock(parts map[string]cyclonedx.Component, name string) error {
	text, err := os.ReadFile(name) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for folder, p := range lock.Packages {
		if _, module, found := strings.Cut(folder, "node_modules/"); found && !p.Dev {
			add(parts, path.Join("pkg:npm", strings.Replace(module, "@", "%40", 1)), p.Version, p.License)
		}
	}
	return nil
}
