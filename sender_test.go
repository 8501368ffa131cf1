package dmarcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestSenderKeys(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"Our CRM (Utrecht)": "our-crm-utrecht", "": "sender", "日本": "sender", "-x-": "x", strings.Repeat("ab ", 60): strings.Repeat("ab-", 19) + "ab"} {
		if got := dmarcd.SenderKey(name); got != want {
			t.Errorf("%q: got %q want %q", name, got, want)
		}
	}
}

func TestTeamSenders(t *testing.T) {
	t.Parallel()
	many := make([]string, dmarcd.MaxSenderClues+1)
	for i := range many {
		many[i] = fmt.Sprintf("h%d.example", i)
	}
	for _, test := range []struct {
		name     string
		sender   dmarcd.TeamSender
		networks []string
		field    string // that is invalid, "" for none
		want     string
	}{
		{
			name:     "canonical form",
			sender:   dmarcd.TeamSender{Key: " our-crm ", Name: " Our CRM ", Hosts: []string{"OUT.crm.example.", "a.example", "out.crm.example"}, Domains: []string{"Bücher.example"}},
			networks: []string{"192.0.2.77/24", "2001:db8::1", "192.0.2.0/24", "::ffff:198.51.100.1"},
			want:     "our-crm|Our CRM|[192.0.2.0/24 198.51.100.1/32 2001:db8::1/128]|[a.example out.crm.example]|[xn--bcher-kva.example]",
		},
		{name: "a system", sender: dmarcd.TeamSender{Key: "as64496", Name: "Data centre"}, want: "AS64496|Data centre|[]|[]|[]"},
		{name: "widest networks", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{"10.0.0.0/8", "2001:db8::/32"}, want: "a|A|[10.0.0.0/8 2001:db8::/32]|[]|[]"},
		{name: "no key", sender: dmarcd.TeamSender{Name: "A"}, field: "key"},
		{name: "the key of unknown networks", sender: dmarcd.TeamSender{Key: "-", Name: "A"}, field: "key"},
		{name: "no system", sender: dmarcd.TeamSender{Key: "AS4294967296", Name: "A"}, field: "key"},
		{name: "system 0", sender: dmarcd.TeamSender{Key: "AS0", Name: "A"}, field: "key"},
		{name: "a path", sender: dmarcd.TeamSender{Key: "a/b", Name: "A"}, field: "key"},
		{name: "long key", sender: dmarcd.TeamSender{Key: strings.Repeat("a", 65), Name: "A"}, field: "key"},
		{name: "no name", sender: dmarcd.TeamSender{Key: "a", Name: "  "}, field: "name"},
		{name: "long name", sender: dmarcd.TeamSender{Key: "a", Name: strings.Repeat("ä", 101)}, field: "name"},
		{name: "control character", sender: dmarcd.TeamSender{Key: "a", Name: "a\x1bb"}, field: "name"},
		{name: "class", sender: dmarcd.TeamSender{Key: "a", Name: "A", Class: "friend"}, field: "class"},
		{name: "host", sender: dmarcd.TeamSender{Key: "a", Name: "A", Hosts: []string{"https://x.example"}}, field: "hosts"},
		{name: "domain", sender: dmarcd.TeamSender{Key: "a", Name: "A", Domains: []string{"com"}}, field: "domains"},
		{name: "many hosts", sender: dmarcd.TeamSender{Key: "a", Name: "A", Hosts: many}, field: "hosts"},
		{name: "many networks", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: many, field: "networks"},
		{name: "wide IPv4", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{"10.0.0.0/7"}, field: "networks"},
		{name: "wide IPv6", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{"2001:db8::/31"}, field: "networks"},
		{name: "everything, mapped", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{"::ffff:0.0.0.0/96"}, field: "networks"},
		{name: "zone", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{"fe80::1%eth0"}, field: "networks"},
		{name: "no network", sender: dmarcd.TeamSender{Key: "a", Name: "A"}, networks: []string{""}, field: "networks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := dmarcd.ParseTeamSender(test.sender, test.networks)
			if test.field != "" {
				var invalid *dmarcd.InvalidError
				if !errors.As(err, &invalid) || invalid.Field != test.field {
					t.Errorf("got %v, want an error in the field %s", err, test.field)
				}
				return
			}
			text := fmt.Sprintf("%s|%s|%v|%v|%v", got.Key, got.Name, got.Networks, got.Hosts, got.Domains)
			if err != nil || text != test.want {
				t.Errorf("got %s, %v want %s", text, err, test.want)
			}
		})
	}
}

func TestKeysOfSenders(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{ // "" for none
		"sendgrid": "sendgrid", "sendgrid:rest": "sendgrid:rest", "our-crm": "our-crm", "-": "-", "-:others": "-:others",
		"AS64496": "AS64496", "as64496:yours": "AS64496:yours", "AS64498:as:Offer0.Example.": "AS64498:as:offer0.example", "google:forwarding": "google:forwarding",
		"192.0.2.7": "192.0.2.7", "192.0.2.7/32": "192.0.2.7", "192.0.2.7/24": "192.0.2.0/24", "::ffff:192.0.2.7": "192.0.2.7", "10.0.0.0/8": "10.0.0.0/8",
		"2001:db8:0:1::/64": "2001:db8:0:1::/64", "2001:DB8:0:1:0::5": "2001:db8:0:1::5", "2001:db8::/32": "2001:db8::/32",

		"": "", "-:": "", "sendgrid:": "", "sendgrid:all": "", "sendgrid:as:": "", "sendgrid:as:com": "", "sendgrid:as:a b": "", "Send Grid": "", "AS0": "", "AS0:yours": "",
		"10.0.0.0/7": "", "2001:db8::/31": "", "192.0.2.0/33": "", "::ffff:0.0.0.0/96": "", "fe80::1%eth0": "", "192.0.2": "", "yours": "yours", ":yours": "",
	} {
		got, err := dmarcd.ParseSenderKey(key)
		if invalid := (*dmarcd.InvalidError)(nil); want == "" && (!errors.As(err, &invalid) || invalid.Field != "key") || want != "" && err != nil || got != want {
			t.Errorf("%q: got %q, %v want %q", key, got, err, want)
		}
		if again, err := dmarcd.ParseSenderKey(got); want != "" && (err != nil || again != got) {
			t.Errorf("%q: got %q, %v want the same again", got, again, err)
		}
	}
	for key, want := range map[string]string{
		"sendgrid": "sendgrid", "sendgrid:rest": "sendgrid", "-:others": "-", "AS64498:as:offer0.example": "AS64498", "192.0.2.7": "", "192.0.2.0/24": "", "2001:db8:0:1::/64": "",
	} {
		if got := dmarcd.SenderBase(key); got != want {
			t.Errorf("the base of %q: got %q want %q", key, got, want)
		}
	}
}

func TestClassesOfSenders(t *testing.T) {
	t.Parallel()
	for word, valid := range map[string]bool{"yours": true, "forwarder": true, "unknown": true, "spoofing": true, "service": false, "": false, "Yours": false} {
		got, err := dmarcd.ParseSenderClass(word)
		var invalid *dmarcd.InvalidError
		if valid && (err != nil || string(got) != word) || !valid && (!errors.As(err, &invalid) || invalid.Field != "class") {
			t.Errorf("%q: got %q, %v want it valid: %t", word, got, err, valid)
		}
	}
	for class, want := range map[dmarcd.Class]bool{dmarcd.ClassYours: true, dmarcd.ClassService: true, dmarcd.ClassForwarder: false, dmarcd.ClassUnknown: false, dmarcd.ClassSpoofing: false} {
		if got := class.Legitimate(); got != want {
			t.Errorf("%s: got legitimate %t want %t", class, got, want)
		}
	}
}
