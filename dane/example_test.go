package dane_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func ExampleParse() {
	record, ok := dane.Parse([]byte{1, 1, 1, 0xc0, 0xff, 0xee})
	fmt.Println(ok, record)
	fmt.Println("usable:", record.Usable(), record.Flaw())
	// Output:
	// true 1 1 1 c0ffee
	// usable: false pkix-usage
}

func ExampleLookup() {
	resolver := dnstest.New(`
example.com               MX    10 mx1.example.com
example.com               MX    20 mx2.example.com
mx1.example.com           A     192.0.2.1
mx2.example.com           A     192.0.2.2
_25._tcp.mx1.example.com  TLSA  030101 ` + strings.Repeat("5a", 32))
	resolver.Authenticate("example.com")

	result := dane.Lookup(context.Background(), resolver, "example.com")
	fmt.Println(result.Domain, result.Status)
	for _, h := range result.Hosts {
		fmt.Println(h.Name, h.Status)
	}
	for _, p := range result.AllProblems() {
		fmt.Println(p.Kind, p.Host)
	}
	// Output:
	// example.com mixed
	// mx1.example.com ok
	// mx2.example.com none
	// single-record mx1.example.com
	// missing-tlsa mx2.example.com
}
