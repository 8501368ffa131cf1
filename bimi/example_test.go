package bimi_test

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func ExampleParse() {
	record, ok := bimi.Parse("v=BIMI1; l=https://example.com/logo.svg; avp=Brand")
	fmt.Println(ok, record.State, record.Location)
	for _, p := range record.Problems {
		fmt.Println(p.Kind, p.Subject, p.Text)
	}
	// Output:
	// true ok https://example.com/logo.svg
	// invalid-value avp Brand
	// no-evidence a
}

func ExampleLookup() {
	resolver := dnstest.New(`
default._bimi.example.com        TXT  "v=BIMI1; l=https://example.com/logo.svg"
default._bimi.intern.example.com TXT  "v=BIMI1; l=; a=;"`)
	for _, domain := range []string{"news.example.com", "intern.example.com"} {
		result := bimi.Lookup(context.Background(), resolver, bimi.Query{Domain: domain, Organization: "example.com"})
		fmt.Println(domain, result.Status, "by", result.RecordDomain)
	}
	// Output:
	// news.example.com ok by example.com
	// intern.example.com declined by intern.example.com
}

func ExamplePreconditions() {
	for _, p := range bimi.Preconditions(
		bimi.Policy{Domain: "news.example.com", P: "reject"},
		bimi.Policy{Domain: "example.com", P: "quarantine", SP: "none", Percent: "50"},
	) {
		fmt.Println(p.Kind, p.Subject, p.Text)
	}
	// Output:
	// subdomain-policy-none example.com none
	// partial-quarantine example.com 50
}

func ExampleCheckImage() {
	image := bimi.CheckImage([]byte(`<svg xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps" viewBox="0 0 80 40">
<title>Example</title>
<rect width="80" height="40" onclick="alert(1)"/>
</svg>`))
	fmt.Println(image.Title, image.Width, image.Height)
	for _, p := range image.Problems {
		fmt.Println(p.Kind, p.Subject, p.Text)
	}
	// Output:
	// Example 80 40
	// not-square svg viewBox 80 40
	// script rect onclick alert(1)
}
