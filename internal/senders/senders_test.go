package senders_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/senders"
)

func TestIdentify(t *testing.T) {
	t.Parallel()
	catalogue := senders.NewCatalogue(senders.Known())
	for _, test := range []struct {
		name  string
		clues senders.Clues
		want  string // "" for none
	}{
		{"host", senders.Clues{Host: "a48-117.smtp-out.amazonses.com"}, "Amazon SES"},
		{"network", senders.Clues{Network: 11377}, "Twilio SendGrid"},
		{"domain", senders.Clues{Domains: []string{"customer.example", "hubspotemail.net"}}, "HubSpot"},
		{"domain of a customer below that of the service", senders.Clues{Domains: []string{"contoso.onmicrosoft.com"}}, "Microsoft 365"},
		{"the host counts more than the network", senders.Clues{Host: "mail-wr1-f41.google.com", Network: 11377}, "Google"},
		{"the network counts more than a signature", senders.Clues{Network: 15169, Domains: []string{"sendgrid.net"}}, "Google"},
		{"a name that merely ends alike", senders.Clues{Host: "notgoogle.com"}, ""},
		{"a service's name in front of another's", senders.Clues{Host: "google.com.attacker.example"}, ""},
		{"a mailing list at a mailbox provider", senders.Clues{Host: "mail-wr1-f41.google.com", Domains: []string{"customer.example", "googlegroups.com"}}, "Google Groups"},
		{"a machine of a customer", senders.Clues{Host: "static.1.2.3.4.clients.your-server.de"}, ""},
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
	own := senders.Sender{Name: "Ours", Kind: senders.Service, Category: senders.Hosting, Hosts: []string{"google.com"}}
	catalogue := senders.NewCatalogue(append([]senders.Sender{own}, senders.Known()...))
	if got, _ := catalogue.Identify(senders.Clues{Host: "mx.google.com"}); got.Name != "Ours" {
		t.Errorf("got %q, want the sender that comes first", got.Name)
	}
	if got, ok := catalogue.Sender("Ours"); !ok || got.Name != "Ours" {
		t.Errorf("got %q, %t, want the sender with the key", got.Name, ok)
	}
	if _, ok := catalogue.Sender("unknown"); ok {
		t.Error("got a sender for a key that none has")
	}
	if got, want := len(catalogue.Senders()), len(senders.Known())+1; got != want {
		t.Errorf("got %d senders, want %d", got, want)
	}
}

// TestEverySenderIsRecognized holds a row for each sender of the file against it.
func TestEverySenderIsRecognized(t *testing.T) {
	t.Parallel()
	text := musttest.Get(os.ReadFile(filepath.Join("testdata", "samples.txt")))(t)
	catalogue, tested := senders.NewCatalogue(senders.Known()), map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		clues := senders.Clues{Host: fields[1]}
		if fields[0] == "domain" {
			clues = senders.Clues{Domains: []string{"customer.example", fields[1]}}
		}
		if got, _ := catalogue.Identify(clues); got.Key != fields[2] {
			t.Errorf("%s %s: got %q, want %q", fields[0], fields[1], got.Key, fields[2])
		}
		tested[fields[2]] = true
	}
	for _, s := range catalogue.Senders() {
		if !tested[s.Key] {
			t.Errorf("%s: got no row in testdata/samples.txt", s.Key)
		}
	}
}

func TestParseSendersRejects(t *testing.T) {
	t.Parallel()
	const good = `[[sender]]
key = "crm"
name = "Our CRM"
kind = "service"
category = "crm and support"
hosts = ["crm.example"]
setup = "Publish its key."
`
	if got, err := senders.ParseSenders(good); err != nil || len(got) != 1 || got[0].Name != "Our CRM" {
		t.Fatalf("got %v, %v, want one sender", got, err)
	}
	for name, text := range map[string]string{
		"no TOML":          "[[sender",
		"unknown field":    good + "colour = \"red\"\n",
		"a key twice":      good + good,
		"bad key":          strings.Replace(good, `"crm"`, `"Our CRM"`, 1),
		"no name":          strings.Replace(good, `"Our CRM"`, `" "`, 1),
		"bad kind":         strings.Replace(good, `"service"`, `"bank"`, 1),
		"bad category":     strings.Replace(good, "crm and support", "bank", 1),
		"nothing to go by": strings.Replace(good, `["crm.example"]`, `[]`, 1),
		"bad host":         strings.Replace(good, "crm.example", "*.crm.example", 1),
		"network 0":        good + "networks = [0]\n",
		"no setup":         strings.Replace(good, "Publish its key.", "", 1),
	} {
		if got, err := senders.ParseSenders(text); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

func TestReadSenders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "senders.toml")
	if _, err := senders.ReadSenders(path); err == nil {
		t.Error("got no error for a file that is not there")
	}
	text := "[[sender]]\nkey = \"lists\"\nname = \"Lists\"\nkind = \"list\"\ndomains = [\"lists.example\"]\nsetup = \"None.\"\n"
	musttest.Do(t, os.WriteFile(path, []byte(text), 0o600))
	got, err := senders.ReadSenders(path)
	if err != nil || len(got) != 1 || got[0].Category != senders.MailingList || !got[0].Relays() {
		t.Errorf("got %+v, %v, want the list of the file", got, err)
	}
}

// The order of the file must not matter: nothing is claimed twice, and no claim is
// without effect because its parent is claimed by the same sender.
func TestKnownIsConsistent(t *testing.T) {
	t.Parallel()
	all := senders.Known()
	if len(all) < 250 {
		t.Errorf("got %d senders, want at least 250", len(all))
	}
	names, networks := map[string]bool{}, map[uint32]string{}
	hosts, domains := map[string]string{}, map[string]string{}
	for _, s := range all {
		if s.Name == "" || names[s.Name] {
			t.Errorf("got the name %q twice or empty, want one of its own", s.Name)
		}
		names[s.Name] = true
		for _, number := range s.Networks {
			if networks[number] != "" {
				t.Errorf("%s: got network %d, want one that %q does not have", s.Name, number, networks[number])
			}
			networks[number] = s.Name
		}
		checkNames(t, s.Name, s.Hosts, hosts)
		checkNames(t, s.Name, s.Domains, domains)
	}
	for _, category := range senders.Categories() {
		if !slices.ContainsFunc(all, func(s senders.Sender) bool { return s.Category == category }) {
			t.Errorf("got no sender of the category %q", category)
		}
	}
}

// checkNames checks the claims of one sender against those of all before it.
func checkNames(t *testing.T, sender string, claims []string, claimed map[string]string) {
	t.Helper()
	for _, name := range claims {
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
