package tlsrpt_test

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

func ExampleParseRecord() {
	record, ok := tlsrpt.ParseRecord("v=TLSRPTv1; rua=mailto:reports@example.com,http://example.com/tls")
	fmt.Println(ok, record.Valid)
	for _, u := range record.RUA {
		fmt.Println(u.Scheme, u.Address, u.Host)
	}
	for _, p := range record.Problems {
		fmt.Println(p.Kind, p.Field, p.Text)
	}
	// Output:
	// true true
	// mailto reports@example.com example.com
	// unsupported-scheme rua http://example.com/tls
}

func ExampleLookupRecord() {
	resolver := dnstest.New(`_smtp._tls.example.com TXT "v=TLSRPTv1; rua=mailto:reports@example.com"`)
	for _, domain := range []string{"example.com", "www.example.com"} {
		l := tlsrpt.LookupRecord(context.Background(), resolver, domain)
		fmt.Println(l.Domain, l.Status)
	}
	// Output:
	// example.com ok
	// www.example.com none
}
