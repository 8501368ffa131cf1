package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packagers make the packages of Linux systems.
var packagers = map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM}

// packages makes a package for each packager and architecture of Linux.
func (r *release) packages(context.Context) error {
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
			variables := map[string]string{"VERSION": r.version, "ARCH": p.arch, "BINARY": r.binary(p), "UNIT": unitFile}
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
