package spf_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/dmarcd/dmarcd/dns/dnstest"
	"github.com/dmarcd/dmarcd/spf"
)

func ExampleParse() {
	_, err := spf.Parse("v=spf1 mx ip4:192.0.2.300 -all")
	var syntax *spf.SyntaxError
	if errors.As(err, &syntax) {
		fmt.Println(syntax.Problem.Kind, syntax.Problem.Term, syntax.Problem.Offset)
	}
	// Output: invalid-address ip4:192.0.2.300 14
}

func ExampleCheck() {
	resolver := dnstest.New(`
		example.com      TXT "v=spf1 mx include:_spf.example.net -all"
		example.com      MX  10 mx.example.com
		mx.example.com   A   192.0.2.1
		_spf.example.net TXT "v=spf1 ip4:198.51.100.0/24 -all"`)
	evaluation := spf.Check(context.Background(), resolver, spf.Identity{
		IP:       netip.MustParseAddr("198.51.100.7"),
		Helo:     "out.example.net",
		MailFrom: "user@example.com",
	})
	fmt.Println(evaluation.Result, "after", evaluation.Lookups, "lookups")
	for _, position := range evaluation.Path {
		fmt.Println(position.Domain, position.Term)
	}
	// Output:
	// pass after 2 lookups
	// example.com include:_spf.example.net
	// _spf.example.net ip4:198.51.100.0/24
}

func ExampleExplain() {
	resolver := dnstest.New(`
		example.com      TXT  "v=spf1 a include:_spf.example.net include:gone.example -all"
		example.com      A    192.0.2.1
		example.com      AAAA 2001:db8::1
		_spf.example.net TXT  "v=spf1 ip4:198.51.100.0/24 exists:%{i}._ok.example.net -all"`)
	explanation := spf.Explain(context.Background(), resolver, "example.com", spf.Limits{})
	fmt.Println(explanation.Status, explanation.Lookups)
	var show func(node *spf.Node, indent string)
	show = func(node *spf.Node, indent string) {
		for _, step := range node.Terms {
			fmt.Println(indent+step.Term.String(), step.Lookups, step.Ranges)
			if step.Child != nil {
				show(step.Child, indent+strings.Repeat(" ", 4))
			}
		}
	}
	show(explanation.Root, "")
	for _, p := range explanation.Problems {
		fmt.Println(p.Kind, p.Domain, p.Term)
	}
	// Output:
	// permerror 4
	// a 1 [192.0.2.1/32 2001:db8::1/128]
	// include:_spf.example.net 3 []
	//     ip4:198.51.100.0/24 2 [198.51.100.0/24]
	//     exists:%{i}._ok.example.net 3 []
	//     -all 3 []
	// include:gone.example 4 []
	// -all 4 []
	// no-such-name example.com include:gone.example
}
