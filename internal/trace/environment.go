package trace

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// FromEnvironment reads the variables of OpenTelemetry from environ, in the form of os.Environ.
// Without an endpoint, URL is "". ignored are the set ones that have no effect here. An error says
// which variable is wrong, without its value.
func FromEnvironment(environ []string) (o Options, ignored []string, err error) {
	set := make(map[string]string)
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") && value != "" {
			set[name] = value
		}
	}
	known := make(map[string]bool)
	o, err = fromVariables(func(name string) string {
		known[name] = true
		return set[name]
	})
	for name := range set {
		if !known[name] && o.URL != "" {
			ignored = append(ignored, name)
		}
	}
	slices.Sort(ignored)
	return o, ignored, err
}

func fromVariables(getenv func(string) string) (Options, error) {
	o := Options{Service: "dmarcd", Headers: make(map[string]string)}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		o.Service = name
	}
	variable := "OTEL_EXPORTER_OTLP_ENDPOINT"
	if base := getenv(variable); base != "" {
		o.URL = strings.TrimRight(base, "/") + "/v1/traces"
	}
	if own := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" { // taken as it is
		variable, o.URL = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", own
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(getenv("OTEL_TRACES_EXPORTER"), "none") {
		o.URL = ""
	}
	if o.URL == "" {
		return o, nil
	}
	if at, err := url.Parse(o.URL); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return o, fmt.Errorf("%s is not an http or https URL; set it to the OTLP/HTTP address of the collector, such as http://localhost:4318", variable)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if protocol := getenv(name); protocol != "" && protocol != "http/json" {
			return o, fmt.Errorf("%s must be http/json, the only protocol of dmarcd; collectors take it on the port of OTLP/HTTP, usually 4318", name)
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			key, value, found := strings.Cut(pair, "=")
			decoded, err := url.PathUnescape(strings.TrimSpace(value))
			if key = strings.TrimSpace(key); key == "" && !found && value == "" {
				continue
			}
			if !found || key == "" || err != nil || strings.ContainsAny(key+decoded, "\r\n") {
				return o, fmt.Errorf("%s must be a list as key=value,key=value, with values in URL encoding", name)
			}
			o.Headers[key] = decoded
		}
	}
	return o, nil
}
