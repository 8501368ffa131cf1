package senders_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/senders"
)

func TestIdentify(t *testing.T) {
	t.Parallel()
	catalogue := senders.NewCatalogue(senders.Known())
	for _, test := range []struct {
		name  string
		clues senders.Clues
		want  string // "" for nobody
	}{
		{"host", senders.Clues{Host: "a48-117.smtp-out.amazonses.com"}, "Amazon SES"},
		{"network", senders.Clues{Network: 11377}, "Twilio SendGrid"},
		{"domain", senders.Clues{Domains: []string{"customer.example", "hubspotemail.net"}}, "HubSpot"},
		{"domain of a customer below that of the service", senders.Clues{Domains: []string{"contoso.onmicrosoft.com"}}, "Microsoft 365"},
		{"the host counts more than the network", senders.Clues{Host: "mail-wr1-f41.google.com", Network: 11377}, "Google"},
		{"the network counts more than a signature", senders.Clues{Network: 15169, Domains: []string{"sendgrid.net"}}, "Google"},
		{"a name that merely ends alike", senders.Clues{Host: "notgoogle.com"}, ""},
		{"a service's name in front of another's", senders.Clues{Host: "google.com.attacker.example"}, ""},
		{"a cloud says nothing", senders.Clues{Network: 16509}, ""},
		{"nothing known", senders.Clues{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, known := catalogue.Identify(test.clues)
			if got.Name != test.want || known != (test.want != "") {
				t.Errorf("got %q, %t, want %q", got.Name, known, test.want)
			}
		})
	}
}

func TestFirstClaimCounts(t *testing.T) {
	t.Parallel()
	own := senders.Sender{Name: "Ours", Kind: senders.Hosting, Hosts: []string{"google.com"}}
	catalogue := senders.NewCatalogue(append([]senders.Sender{own}, senders.Known()...))
	if got, _ := catalogue.Identify(senders.Clues{Host: "mx.google.com"}); got.Name != "Ours" {
		t.Errorf("got %q, want the sender that comes first", got.Name)
	}
	if got, want := len(catalogue.Senders()), len(senders.Known())+1; got != want {
		t.Errorf("got %d senders, want %d", got, want)
	}
}

// The order of the table must not matter: nothing is claimed twice, and no claim is
// without effect because its parent is claimed by the same sender.
func TestKnownIsConsistent(t *testing.T) {
	t.Parallel()
	all := senders.Known()
	if len(all) < 60 {
		t.Errorf("got %d senders, want at least 60", len(all))
	}
	names, networks := map[string]bool{}, map[uint32]string{}
	hosts, domains := map[string]string{}, map[string]string{}
	for _, s := range all {
		if s.Name == "" || names[s.Name] {
			t.Errorf("got the name %q twice or empty, want one of its own", s.Name)
		}
		names[s.Name] = true
		if !slices.Contains(senders.Kinds(), s.Kind) {
			t.Errorf("%s: got the kind %q, want one of %q", s.Name, s.Kind, senders.Kinds())
		}
		if len(s.Networks)+len(s.Hosts)+len(s.Domains) == 0 {
			t.Errorf("%s: got nothing to recognise it by", s.Name)
		}
		for _, number := range s.Networks {
			if number == 0 || networks[number] != "" {
				t.Errorf("%s: got network %d, want one that %q does not have", s.Name, number, networks[number])
			}
			networks[number] = s.Name
		}
		checkNames(t, s.Name, s.Hosts, hosts)
		checkNames(t, s.Name, s.Domains, domains)
	}
	for _, kind := range senders.Kinds() {
		if !slices.ContainsFunc(all, func(s senders.Sender) bool { return s.Kind == kind }) {
			t.Errorf("got no sender of the kind %q", kind)
		}
	}
}

// checkNames checks the claims of one sender against those of all before it.
func checkNames(t *testing.T, sender string, claims []string, claimed map[string]string) {
	t.Helper()
	for _, name := range claims {
		if !dns.IsHostname(name) || name != strings.ToLower(name) || !strings.Contains(name, ".") {
			t.Errorf("%s: got %q, want a domain name in lower case", sender, name)
		}
		if by := claimed[name]; by != "" {
			t.Errorf("%s: got %q, which %s has", sender, name, by)
		}
		claimed[name] = sender
	}
	for _, name := range claims {
		for above := dns.Parent(name); above != ""; above = dns.Parent(above) {
			if slices.Contains(claims, above) {
				t.Errorf("%s: got %q beside %q, want one of them", sender, name, above)
			}
		}
	}
}
