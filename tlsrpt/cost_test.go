package tlsrpt_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/costtest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// TestCost checks that the time for a report depends only on its length.
func TestCost(t *testing.T) {
	const (
		length = 1 << 20
		factor = 30
	)
	fill := func(part string) string { return `{"organization-name":"a",` + strings.Repeat(part, length/len(part)) }
	plain := fill(`"contact-info":"a",`)
	for _, test := range []struct{ name, part string }{
		{"unknown members", `"":0,`},
		{"members in another form", `"Contact_Info":"",`},
		{"long names", `"` + strings.Repeat("a-", 30<<10) + `":0,`},
		{"escapes", `"contact-info":"` + strings.Repeat(`\n`, 30<<10) + `",`},
		{"broken escapes", `"contact-info":"` + strings.Repeat(`\u`, 10<<10) + `",`},
		{"bad bytes", `"contact-info":"` + strings.Repeat("\xff", 10<<10) + `",`},
		{"lists in texts", `"policies":[{"policy":{"mx-host":"` + strings.Repeat(`[`, 60<<10) + `"}}],`},
		{"prefixes", `"policies":[{"policy":{"mx-host":"` + strings.Repeat(`mx:`, 20<<10) + `"}}],`},
		{"commas", `,`},
		{"nested lists", `"x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + ","},
	} {
		t.Run(test.name, func(t *testing.T) {
			costtest.AtMost(t, factor, reading(plain), reading(fill(test.part)))
		})
	}
}

func reading(document string) func() {
	return func() { _, _ = tlsrpt.ReadReport(strings.NewReader(document), tlsrpt.Limits{}) }
}
