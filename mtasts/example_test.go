package mtasts_test

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/mtasts"
)

func ExampleLookupRecord() {
	resolver := dnstest.New(`_mta-sts.example.com TXT "v=STSv1; id=20160831085700Z;"`)
	for _, domain := range []string{"example.com", "www.example.com"} {
		l := mtasts.LookupRecord(context.Background(), resolver, domain)
		record, _ := l.Record()
		fmt.Printf("%s %s %q\n", l.Domain, l.Status, record.ID)
	}
	// Output:
	// example.com ok "20160831085700Z"
	// www.example.com none ""
}

func ExampleParsePolicy() {
	policy := mtasts.ParsePolicy("version: STSv1\nmode: testing\nmx: *.example.com\nmax_age: 3600\n")
	fmt.Println(policy.Valid, policy.Mode, policy.MaxAge)
	fmt.Println(policy.Allows("mail.example.com"), policy.Allows("example.com"))
	for _, p := range policy.Problems {
		fmt.Println(p.Kind, p.Field, p.Count, p.Limit)
	}
	// Output:
	// true testing 1h0m0s
	// true false
	// short-max-age max_age 3600 86400
}
