package dkim_test

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

func ExampleParseKey() {
	key, ok := dkim.ParseKey("v=DKIM1; k=ed25519; t=y; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
	fmt.Println(ok, key.State, key.Algorithm, key.Bits)
	for _, p := range key.Problems {
		fmt.Println(p.Kind, p.Tag, p.Text)
	}
	// Output:
	// true usable ed25519 256
	// test-mode t y
}

func ExampleLookupKey() {
	resolver := dnstest.New(`
s1._domainkey.example.com   CNAME  s1.keys.example.net
s1.keys.example.net         TXT    "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
old._domainkey.example.com  TXT    "v=DKIM1; p="`)
	for _, selector := range []string{"s1", "old", "new"} {
		l := dkim.LookupKey(context.Background(), resolver, selector, "example.com")
		fmt.Println(l.Selector, l.Status, l.Answer.Aliases)
	}
	// Output:
	// s1 found [s1.keys.example.net]
	// old revoked []
	// new none []
}

func ExampleProbe() {
	resolver := dnstest.New(`
google._domainkey.example.com  TXT  "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
example.net                    A    192.0.2.1`)
	for _, domain := range []string{"example.com", "example.net"} {
		probed := dkim.Probe(context.Background(), resolver, domain, []string{"default", "google"}, 10)
		fmt.Println(probed.Domain, "namespace", probed.Namespace)
		for _, l := range probed.Published() {
			fmt.Println(l.Selector, l.Status)
		}
	}
	// Output:
	// example.com namespace exists
	// google found
	// example.net namespace missing
}
