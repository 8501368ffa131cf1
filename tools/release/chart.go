package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
)

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
