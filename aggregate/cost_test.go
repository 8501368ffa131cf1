package aggregate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/costtest"
)

// TestCost checks that the time for a document depends only on its length, not on nesting
// or token length. Each row has two documents of about the same length. It runs alone,
// like TestBombs.
func TestCost(t *testing.T) {
	const (
		length = 1 << 20
		deep   = 61
		factor = 6
	)
	fill := func(part string) string { return strings.Repeat(part, length/len(part)) }
	distinct := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("<x" + strconv.Itoa(i) + ">")
		}
		return b.String()
	}
	for _, test := range []struct{ name, plain, hostile string }{
		{"end tags of no open element, outside", "<a>" + fill("</x>"), distinct(deep) + fill("</x>")},
		{"end tags of no open element", sampleHead + fill("</x>"), sampleHead + distinct(deep) + fill("</x>")},
		{"end tags of no open element, of one length", "<a>" + fill("</x99>"), distinct(deep) + fill("</x99>")},
		{
			"end tags in capital letters",
			sampleHead + distinct(2) + fill("<y></Y>"), sampleHead + distinct(deep) + fill("<y></Y>"),
		},
		{
			"end tags of no open element between others",
			sampleHead + distinct(2) + fill("<y></x></y>"), sampleHead + distinct(deep) + fill("<y></x></y>"),
		},
		{"long names of one length", "<a>" + fill("</x>"), longNames(deep) + fill("</"+strings.Repeat("y", 8<<10)+">")},
		{"unknown elements in wrappers", sampleHead + fill("<x/>"), sampleHead + distinct(deep-1) + fill("<x/>")},
		{"elements that are not closed", sampleHead + fill("<record></record>"), sampleHead + fill("<record><row>")},
		{"values with elements in them", sampleHead + fill("<x/>"), "<feedback><report_metadata><org_name>" + fill("<x/>")},
		{"long tags that are none", fill("<a b='c'/>"), fill("<a " + strings.Repeat("b", 200<<10))},
		{"long sections", fill("<a b='c'/>"), fill("<![CDATA[" + strings.Repeat("]]", 100<<10) + "]]>")},
		{"long instructions", fill("<a b='c'/>"), fill("<?a " + strings.Repeat("b>", 100<<10))},
		{"many attributes", sampleHead + fill("<x/>"), fill("<feedback " + strings.Repeat("a='b' ", 30<<10) + ">")},
		{"ampersands", sampleHead + fill("<x/>"), sampleHead + fill("<record><row><count>"+strings.Repeat("&", 1<<10)+"</count></row></record>")},
		{
			"a long author domain and many results",
			sampleHead + fill("<record></record>"),
			sampleHead + fill("<record><identifiers><header_from>"+strings.Repeat("a.", 30<<10)+"</header_from></identifiers><auth_results>"+
				strings.Repeat("<dkim><domain>b</domain><result>pass</result></dkim>", 100)+"</auth_results><row><count>1</count></row></record>"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			costtest.AtMost(t, factor, reading(test.plain), reading(test.hostile))
		})
	}
}

// longNames opens n elements whose names of 8 KiB differ only in the last bytes.
func longNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("<" + strings.Repeat("y", 8<<10-2) + strconv.Itoa(10+i) + ">")
	}
	return b.String()
}

// reading reads a document and discards the result.
func reading(document string) func() {
	return func() { _, _, _ = readWithin(strings.NewReader(document), aggregate.Limits{}) }
}
