package ui_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"example.com":                          "example.com",
		"xn--bcher-kva.example":                "bücher.example (xn--bcher-kva.example)",
		"XN--BCHER-KVA.example":                "bücher.example (XN--BCHER-KVA.example)",
		"_dmarc.mail.xn--bcher-kva.example.":   "_dmarc.mail.bücher.example (_dmarc.mail.xn--bcher-kva.example).",
		"ada@xn--bcher-kva.example, and more.": "ada@bücher.example (xn--bcher-kva.example), and more.",
		"Mail as xn--fiqs8s and example.com":   "Mail as 中国 (xn--fiqs8s) and example.com",
		"xn--a.example":                        "xn--a.example", // not Punycode
		"xn--example-":                         "xn--example-",
		"":                                     "",
	} {
		if got := ui.Names(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
