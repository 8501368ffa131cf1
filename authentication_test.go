package dmarcd_test

import (
	"testing"

	"github.com/dmarcd/dmarcd"
)

func TestStandings(t *testing.T) {
	t.Parallel()
	as := func(domain string) dmarcd.Authentication {
		return dmarcd.Authentication{Genuine: dmarcd.GenuineYes, Domain: domain}
	}
	for _, row := range []struct {
		name                  string
		authentication        dmarcd.Authentication
		organization, contact string
		want                  dmarcd.Standing
	}{
		{"a bare file", dmarcd.Authentication{}, "google.test", "a@google.test", dmarcd.Unverified},
		{"not genuine", dmarcd.Authentication{Genuine: dmarcd.GenuineNo, Domain: "google.test"}, "google.test", "a@google.test", dmarcd.Unverified},
		{"the reporter", as("google.test"), "Google.TEST", "", dmarcd.VerifiedReporter},
		{"a subdomain of the reporter", as("mail.google.test"), "google.test", "", dmarcd.VerifiedReporter},
		{"the reporter in a subdomain", as("google.test"), "dmarc.google.test", "", dmarcd.VerifiedReporter},
		{"the contact", as("google.test"), "Google Inc.", "noreply@mail.google.test", dmarcd.VerifiedContact},
		{"the contact in brackets", as("google.test"), "Google Inc.", "Reports <noreply@google.test>", dmarcd.VerifiedContact},
		{"another domain", as("evil.test"), "google.test", "noreply@google.test", dmarcd.VerifiedDomain},
		{"another domain of the same suffix", as("evil.co.uk"), "good.co.uk", "a@good.co.uk", dmarcd.VerifiedDomain},
		{"an old authentication result", dmarcd.Authentication{Genuine: dmarcd.GenuineYes}, "", "", dmarcd.VerifiedDomain},
		{"nothing to compare with", as("evil.test"), "", "", dmarcd.VerifiedDomain},
	} {
		delivery := dmarcd.Delivery{Reports: []dmarcd.NewReport{{Report: dmarcd.Report{Organization: row.organization}, Contact: row.contact}}}
		delivery.SetAuthentication(row.authentication)
		if got := delivery.Reports[0].Standing; got != row.want {
			t.Errorf("%s: got %d, want %d", row.name, got, row.want)
		}
	}
}

func TestMayReplace(t *testing.T) {
	t.Parallel()
	type version struct {
		domain   string
		standing dmarcd.Standing
	}
	authentication := func(domain string) dmarcd.Authentication {
		var delivery dmarcd.Delivery
		delivery.SetAuthentication(dmarcd.Authentication{Domain: domain})
		return delivery.Authentication
	}
	none, evil := version{"", dmarcd.Unverified}, version{"evil.test", dmarcd.VerifiedDomain}
	for _, row := range []struct {
		name        string
		new, stored version
		want        bool
	}{
		{"unverified over unverified", none, none, true},
		{"verified over unverified", evil, none, true},
		{"unverified over verified", none, evil, false},
		{"the same domain", evil, evil, true},
		{"the same organization", version{"a.evil.test", dmarcd.VerifiedDomain}, evil, true},
		{"the reporter over another", version{"google.test", dmarcd.VerifiedReporter}, evil, true},
		{"another over the reporter", evil, version{"google.test", dmarcd.VerifiedReporter}, false},
		{"the reporter over its own contact", version{"google.test", dmarcd.VerifiedReporter}, version{"evil.test", dmarcd.VerifiedContact}, true},
		{"two that match as well", version{"evil.test", dmarcd.VerifiedContact}, version{"google.test", dmarcd.VerifiedContact}, false},
		{"two that match as badly", version{"other.test", dmarcd.VerifiedDomain}, evil, false},
	} {
		got := dmarcd.MayReplace(authentication(row.new.domain), row.new.standing, authentication(row.stored.domain), row.stored.standing)
		if got != row.want {
			t.Errorf("%s: got %t, want %t", row.name, got, row.want)
		}
	}
}
