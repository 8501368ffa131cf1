package txt_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns/txt"
)

func TestCutVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		rest       string
		spaced, ok bool
	}{
		{name: "version and fields", text: "v=X1; a=b", rest: " a=b", ok: true},
		{name: "nothing after the semicolon", text: "v=X1;", ok: true},
		{name: "white space before the semicolon", text: "v=X1 \t;a=b", rest: "a=b", spaced: true, ok: true},
		{name: "no semicolon", text: "v=X1"},
		{name: "longer version", text: "v=X10;"},
		{name: "another case", text: "V=X1;"},
		{name: "white space first", text: " v=X1;"},
		{name: "empty", text: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rest, spaced, ok := txt.CutVersion(tt.text, "v=X1")
			if ok != tt.ok || ok && (rest != tt.rest || spaced != tt.spaced) {
				t.Errorf("got %q, %v, %v, want %q, %v, %v", rest, spaced, ok, tt.rest, tt.spaced, tt.ok)
			}
		})
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text      string
		isName, isValue bool
	}{
		{name: "letters and digits", text: "Ab1", isName: true, isValue: true},
		{name: "digit first", text: "1a", isName: true, isValue: true},
		{name: "punctuation inside", text: "a_b-c.d", isName: true, isValue: true},
		{name: "punctuation first", text: "_a", isValue: true},
		{name: "longest name", text: strings.Repeat("a", 32), isName: true, isValue: true},
		{name: "name too long", text: strings.Repeat("a", 33), isValue: true},
		{name: "other printable characters", text: "!~", isValue: true},
		{name: "equals sign", text: "a=b"},
		{name: "space", text: "a b"},
		{name: "not ASCII", text: "ä"},
		{name: "empty", text: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := txt.IsExtensionName(tt.text); got != tt.isName {
				t.Errorf("IsExtensionName(%q): got %v, want %v", tt.text, got, tt.isName)
			}
			if got := txt.IsExtensionValue(tt.text); got != tt.isValue {
				t.Errorf("IsExtensionValue(%q): got %v, want %v", tt.text, got, tt.isValue)
			}
		})
	}
}
