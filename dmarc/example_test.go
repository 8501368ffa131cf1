package dmarc_test

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func ExampleParse() {
	record, ok := dmarc.Parse("v=DMARC1; p=reject; sp=rejekt; rua=mailto:dmarc@example.com")
	fmt.Println(ok, record.State)
	fmt.Println("literal policy:", record.P)
	policy, _ := record.Policy(dmarc.Itself)
	fmt.Println("policy in effect:", policy)
	for _, p := range record.Problems {
		fmt.Println(p.Kind, p.Tag, p.Text)
	}
	// Output:
	// true acts as p=none
	// literal policy: reject
	// policy in effect: none
	// invalid-value sp rejekt
}

func ExampleDiscover() {
	resolver := dnstest.New(`
_dmarc.example.com  TXT  "v=DMARC1; p=none; sp=quarantine; np=reject"
www.example.com     A    192.0.2.1`)
	for _, name := range []string{"example.com", "www.example.com", "ghost.example.com"} {
		d := dmarc.Discover(context.Background(), resolver, name)
		fmt.Println(d.Domain, d.Status, d.RecordDomain, d.Source, d.Policy)
	}
	// Output:
	// example.com ok example.com p none
	// www.example.com ok example.com sp quarantine
	// ghost.example.com ok example.com np reject
}
