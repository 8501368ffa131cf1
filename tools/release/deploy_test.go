package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

const chartFolder = "../../deploy/helm/dmarcd"

// least are the values that have no default.
const least = `
database: {host: db.example.com}
secrets: {databasePassword: abc}
`

// everything turns on all that is off by default.
const everything = `
database: {host: db.example.com, parameters: ""}
replicas: 3
settings: {DMARCD_BASE_URL: "https://dmarc.example.com/api", DMARCD_REPORT_DOMAIN: reports.example.com, DMARCD_ZONE: dns.example.net, DMARCD_RATE_LIMIT: 10, OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318"}
secrets:
  databasePassword: abc
  key: dmarcd-key-1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
  settings: {DMARCD_TOKEN: dmd_x}
  existingSettings: more
  files: certificates
imagePullSecrets: [{name: registry}]
pgbouncer: {enabled: true, image: "registry.example.com/pgbouncer:1.25"}
persistence: {storageClass: fast}
smtp: {enabled: true, annotations: {a: b}}
dns: {enabled: true, annotations: {a: b}}
ingress: {enabled: true, className: nginx, host: dmarc.example.com, annotations: {a: b}, tlsSecret: tls}
networkPolicy: {from: [{namespaceSelector: {matchLabels: {name: ingress}}}]}
monitoring: {serviceMonitor: true, rules: true}
podAnnotations: {a: b}
nodeSelector: {disk: ssd}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
`

// TestChart renders the chart, lints it, and decodes every object as strictly as the server of
// Kubernetes does: unknown, repeated and mistyped fields are errors.
func TestChart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		want   []string
	}{
		"least": {least, []string{"NetworkPolicy", "PodDisruptionBudget", "Secret", "Secret", "Service", "StatefulSet"}},
		"everything": {everything, []string{
			"ConfigMap", "Deployment", "Ingress", "NetworkPolicy", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule",
			"Secret", "Secret", "Service", "Service", "Service", "Service", "ServiceMonitor", "StatefulSet",
		}},
		"one replica, an existing secret, no policy": {
			"{database: {host: db}, secrets: {existing: mine}, replicas: 1, networkPolicy: {enabled: false}}",
			[]string{"Secret", "Service", "StatefulSet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := chartutil.ReadValues([]byte(test.values))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range lint.AllWithKubeVersion(chartFolder, values, "default", nil).Messages {
				if m.Severity > support.InfoSev {
					t.Errorf("lint: %v", m)
				}
			}
			text, err := render(test.values)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, object := range decode(t, text) {
				kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, test.want) {
				t.Errorf("got objects %v, want %v", kinds, test.want)
			}
		})
	}
}

// TestChartConnectsThroughPgbouncer checks the one setting that two objects must agree on.
func TestChartConnectsThroughPgbouncer(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		least:      "postgres://dmarcd:$(DATABASE_PASSWORD)@db.example.com:5432/dmarcd?sslmode=require",
		everything: "postgres://dmarcd:$(DATABASE_PASSWORD)@test-dmarcd-pgbouncer:6432/dmarcd?sslmode=disable",
		"{database: {host: 'a:5432,b:5433', parameters: target_session_attrs=read-write}, secrets: {existing: mine}}": "postgres://dmarcd:$(DATABASE_PASSWORD)@a:5432,b:5433/dmarcd?target_session_attrs=read-write",
		"{database: {host: 'a:5433,b', port: 6000, parameters: ''}, secrets: {existing: mine}}":                       "postgres://dmarcd:$(DATABASE_PASSWORD)@a:5433,b:6000/dmarcd",
	} {
		text, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, text) {
			set, ok := object.(*appsv1.StatefulSet)
			if !ok {
				continue
			}
			got := ""
			for _, variable := range set.Spec.Template.Spec.Containers[0].Env {
				if variable.Name == "DMARCD_DATABASE" {
					got = variable.Value
				}
			}
			if got != want {
				t.Errorf("got DMARCD_DATABASE %q, want %q", got, want)
			}
		}
	}
}

// TestChartServesHTTPS checks that probes connect as the setting DMARCD_TLS says.
func TestChartServesHTTPS(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		least:                                   "HTTP",
		least + `settings: {DMARCD_TLS: "off"}`: "HTTP",
		least + "settings: {DMARCD_TLS: auto, DMARCD_BASE_URL: 'https://dmarc.example.com/api'}":                                                            "HTTPS",
		least + "settings: {DMARCD_TLS: files, DMARCD_TLS_CERTIFICATE: /files/tls.crt, DMARCD_TLS_KEY: /files/tls.key}\nmonitoring: {serviceMonitor: true}": "HTTPS",
	} {
		text, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, text) {
			set, ok := object.(*appsv1.StatefulSet)
			if !ok {
				continue
			}
			c := set.Spec.Template.Spec.Containers[0]
			for _, got := range []string{string(c.StartupProbe.HTTPGet.Scheme), string(c.ReadinessProbe.HTTPGet.Scheme), string(c.LivenessProbe.HTTPGet.Scheme)} {
				if got != want {
					t.Errorf("%s: got a probe by %s, want %s", values, got, want)
				}
			}
		}
	}
}

// TestChartOpensPorts checks that the policy lets the daemon connect to what it needs, and to nothing
// else in the cluster.
func TestChartOpensPorts(t *testing.T) {
	t.Parallel()
	// Those of the settings' defaults: DNS, mail servers, the web, mailboxes and relays.
	always := []int32{25, 53, 53, 80, 143, 443, 465, 587, 993}
	pooled := "pgbouncer: {enabled: true, image: x}\n"
	for name, test := range map[string]struct {
		values string
		want   []int32
	}{
		"least":                 {least, []int32{5432}},
		"two servers":           {"{database: {host: 'a:5433,b', port: 6000}, secrets: {existing: mine}}", []int32{5433, 6000}},
		"pgbouncer":             {least + pooled, []int32{6432}},
		"a collector of traces": {least + "networkPolicy: {egressPorts: [25, 80, 143, 443, 465, 587, 993, 4318]}", []int32{4318, 5432}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := render(test.values)
			if err != nil {
				t.Fatal(err)
			}
			var got []int32
			for _, object := range decode(t, text) {
				policy, ok := object.(*networkingv1.NetworkPolicy)
				if !ok || policy.Name != "test-dmarcd" {
					continue
				}
				for _, rule := range policy.Spec.Egress {
					for _, port := range rule.Ports {
						got = append(got, port.Port.IntVal)
					}
				}
			}
			want := slices.Concat(always, test.want)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("got ports %v, want %v", got, want)
			}
		})
	}
}

// TestChartPublishes checks which paths the ingress publishes: metrics and probes are not among
// them, unless the API takes all paths.
func TestChartPublishes(t *testing.T) {
	t.Parallel()
	for base, want := range map[string][]string{
		"":                                  {"Exact /", "Exact /mcp", "Prefix /api", "Prefix /app", "Prefix /tlsrpt"},
		"https://dmarc.example.com/api":     {"Exact /", "Exact /mcp", "Prefix /api", "Prefix /app", "Prefix /tlsrpt"},
		"https://dmarc.example.com/v1/mail": {"Exact /", "Exact /mcp", "Prefix /app", "Prefix /tlsrpt", "Prefix /v1/mail"},
		"https://dmarc.example.com/":        {"Exact /mcp", "Prefix /", "Prefix /app", "Prefix /tlsrpt"},
		"https://dmarc.example.com":         {"Exact /mcp", "Prefix /", "Prefix /app", "Prefix /tlsrpt"},
	} {
		text, err := render(least + "ingress: {enabled: true, host: dmarc.example.com}\nsettings: {DMARCD_BASE_URL: '" + base + "'}")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, object := range decode(t, text) {
			if ingress, ok := object.(*networkingv1.Ingress); ok {
				for _, path := range ingress.Spec.Rules[0].HTTP.Paths {
					got = append(got, string(*path.PathType)+" "+path.Path)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q: got the paths %q, want %q", base, got, want)
		}
	}
}

// TestChartRejects checks that wrong values are reported with what to do.
func TestChartRejects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, want string }{
		"no database":               {"{secrets: {existing: mine}}", "Set database.host"},
		"no password":               {"{database: {host: db}}", "Set secrets.databasePassword"},
		"a password for no URL":     {"{database: {host: db}, secrets: {databasePassword: 'a/b'}}", "databasePassword"},
		"an unknown value":          {"{database: {hots: db}}", "hots"},
		"no setting":                {least + "settings: {BASE_URL: x}", "BASE_URL"},
		"a secret among settings":   {least + "settings: {DMARCD_OIDC_CLIENT_SECRET: x}", "DMARCD_OIDC_CLIENT_SECRET"},
		"a password among settings": {least + "settings: {DMARCD_MAIL_RELAY: 'smtp://user:secret@relay.example.com'}", "DMARCD_MAIL_RELAY"},
		"mail without a domain":     {least + "smtp: {enabled: true}", "DMARCD_REPORT_DOMAIN"},
		"DNS without a zone":        {least + "dns: {enabled: true}", "DMARCD_ZONE"},
		"a key among settings":      {least + "settings: {DMARCD_ZONE_SECONDARIES: '192.0.2.1=transfer:c2VjcmV0'}", "DMARCD_ZONE_SECONDARIES"},
		"no image of pgbouncer":     {least + "pgbouncer: {enabled: true}", "Set pgbouncer.image"},
		"pgbouncer and two servers": {"{database: {host: 'a,b'}, secrets: {existing: mine}, pgbouncer: {enabled: true, image: x}}", "one host"},
		"pgbouncer and a port":      {"{database: {host: 'a:6000'}, secrets: {existing: mine}, pgbouncer: {enabled: true, image: x}}", "database.port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render(test.values)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// render returns all objects of the chart, in the order of their files.
func render(text string) (string, error) {
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		return "", err
	}
	c, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "test", Namespace: "default", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var objects strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			objects.WriteString("---\n" + files[name] + "\n")
		}
	}
	return objects.String(), nil
}

// foreign matches objects of the Prometheus operator, whose fields are unknown here.
var foreign = regexp.MustCompile(`(?m)^apiVersion: monitoring\.coreos\.com/v1$`)

func decode(t *testing.T, text string) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var objects []runtime.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.Trim(document, "-\n")) == 0 {
			continue
		}
		if foreign.Match(document) {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
				t.Fatalf("%v\n%s", err, document)
			}
			objects = append(objects, object)
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
}
