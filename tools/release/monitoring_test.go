package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// TestRules checks that Prometheus can read the alert rules, and that they use metrics and
// labels that the daemon has.
func TestRules(t *testing.T) {
	t.Parallel()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				For         time.Duration
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile("../../deploy/monitoring/prometheus-rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	known := documented(t)
	names := make(map[string]bool)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || names[rule.Alert] || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %q: want a name of its own, a severity, a summary and a description", rule.Alert)
			}
			names[rule.Alert] = true
			checkExpression(t, rule.Alert, rule.Expr, known)
		}
	}
	if len(names) == 0 {
		t.Error("got no rule")
	}
}

// TestDashboard checks that every panel asks for metrics and labels that the daemon has.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/monitoring/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	known := documented(t)
	shown := make(map[string]bool)
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q has no query", panel.Title)
		}
		if panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("panel %q is outside of the grid", panel.Title)
		}
		for _, target := range panel.Targets {
			for _, name := range checkExpression(t, panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"), known) {
				shown[name] = true
			}
		}
	}
	for name := range known {
		if !shown[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// targetLabels are added by Prometheus; le belongs to histograms.
var targetLabels = []string{"job", "instance", "le", "__name__"}

// checkExpression parses PromQL and returns the metrics of the daemon in it.
func checkExpression(t *testing.T, where, expression string, known map[string][]string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expression)
		return nil
	}
	var used, offered []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			if !strings.HasPrefix(n.Name, "dmarcd_") {
				return nil
			}
			name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(n.Name, "")
			have, found := known[name]
			if !found {
				t.Errorf("%s: got %s, want a metric of docs/metrics.md", where, n.Name)
			}
			names = append(names, name)
			offered = append(offered, have...)
			for _, m := range n.LabelMatchers {
				if !slices.Contains(targetLabels, m.Name) && !slices.Contains(have, m.Name) {
					t.Errorf("%s: got the label %s of %s, want one of %v", where, m.Name, n.Name, have)
				}
				if m.Type != labels.MatchEqual && m.Value == "" {
					t.Errorf("%s: the matcher %s of %s matches anything", where, m, n.Name)
				}
			}
		case *parser.AggregateExpr:
			used = append(used, n.Grouping...)
		}
		return nil
	})
	for _, label := range used {
		if !slices.Contains(targetLabels, label) && !slices.Contains(offered, label) {
			t.Errorf("%s: grouped by %s, which no metric in %s has", where, label, expression)
		}
	}
	return names
}

// documented returns the metrics of docs/metrics.md, which a test of internal/app compares with
// the daemon, and their labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		known[row[1]] = strings.Split(strings.TrimSpace(row[2]), ", ")
	}
	if len(known) == 0 {
		t.Fatal("docs/metrics.md lists no metrics")
	}
	return known
}
