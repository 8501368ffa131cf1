package app

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dmarcd/dmarcd/internal/goldentest"
	"github.com/dmarcd/dmarcd/internal/store"
	"github.com/dmarcd/dmarcd/internal/store/storetest"
)

// described takes a prometheus.Desc apart, whose fields are private.
var described = regexp.MustCompile(`^Desc{fqName: "([^"]+)", help: "(.*)", unit: "[^"]*", constLabels: {([^}]*)}, variableLabels: {([^}]*)}}$`)

// TestMetricsDocumented compares docs/metrics.md with the metrics that the daemon registers;
// -update writes it. The dashboard and the alert rules are checked against that document.
func TestMetricsDocumented(t *testing.T) {
	t.Parallel()
	a := &App{metrics: newMetrics(storetest.SQLite(t).Open(t, store.Options{}), "test", newStages())}
	a.metrics.registry.MustRegister(spoolCollector{a})
	registerTracer(a.metrics.registry, nil)
	descs := make(chan *prometheus.Desc)
	go func() {
		a.metrics.registry.Describe(descs)
		close(descs)
	}()
	var rows []string
	for desc := range descs {
		fields := described.FindStringSubmatch(desc.String())
		if fields == nil {
			t.Fatalf("got %s, want a description of the known form", desc)
		}
		if !strings.HasPrefix(fields[1], "dmarcd_") {
			continue // of the Go runtime and the process
		}
		labels := strings.ReplaceAll(fields[4], ",", ", ")
		if fields[3] != "" {
			labels, _, _ = strings.Cut(fields[3], "=")
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", fields[1], labels, fields[2]))
	}
	slices.Sort(rows)
	goldentest.Check(t, "../../docs/metrics.md", `# Metrics

`+"`/metrics`"+` on the HTTP listener exports these metrics in the Prometheus format, in addition to those
of the Go runtime (`+"`go_*`"+`) and the process (`+"`process_*`"+`). Times are histograms, with the suffixes
`+"`_bucket`, `_sum` and `_count`"+`. Clients cannot choose label values.

| metric | labels | meaning |
|---|---|---|
`+strings.Join(rows, "\n")+`

[deploy/monitoring](../deploy/monitoring) contains a Grafana dashboard and Prometheus alert rules.
`+"`make gen`"+` writes this list.
`)
}
