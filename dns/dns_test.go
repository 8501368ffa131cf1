package dns_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
)

func TestNames(t *testing.T) {
	t.Parallel()
	label63 := strings.Repeat("a", 63)
	// Three labels of 63 and one of 61, with their dots, are 253.
	name253 := strings.Repeat(label63+".", 3) + label63[:61]
	for _, tt := range []struct {
		name, ask   string
		valid, host bool
	}{
		{name: "two labels", ask: "example.com", valid: true, host: true},
		{name: "one label", ask: "com", valid: true, host: true},
		{name: "upper case", ask: "Example.COM", valid: true, host: true},
		{name: "digits and hyphens", ask: "a-1.0.example", valid: true, host: true},
		{name: "underscore", ask: "_dmarc.example.com", valid: true, host: true},
		{name: "A-label", ask: "xn--bcher-kva.example", valid: true, host: true},
		{name: "wildcard", ask: "*.example.com", valid: true},
		{name: "address literal", ask: "[192.0.2.1]", valid: true},
		{name: "other printable character", ask: "a~b.example", valid: true},
		{name: "first character below the letters", ask: "a@b.example", valid: true},
		{name: "longest label", ask: label63 + ".example", valid: true, host: true},
		{name: "label too long", ask: label63 + "a.example"},
		{name: "longest name", ask: name253, valid: true, host: true},
		{name: "name too long", ask: name253 + "a"},
		{name: "root", ask: ""},
		{name: "trailing dot", ask: "example.com."},
		{name: "leading dot", ask: ".example.com"},
		{name: "empty label", ask: "example..com"},
		{name: "space", ask: "exam ple.com"},
		{name: "control character", ask: "exam\x7fple.com"},
		{name: "not ASCII", ask: "bücher.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := dns.ValidName(tt.ask); got != tt.valid {
				t.Errorf("ValidName(%q): got %v, want %v", tt.ask, got, tt.valid)
			}
			if got := dns.IsHostname(tt.ask); got != tt.host {
				t.Errorf("IsHostname(%q): got %v, want %v", tt.ask, got, tt.host)
			}
		})
	}
}
