package e2e_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestMendedFindingThatTheFactsDoNotShow(t *testing.T) {
	without := strings.Replace(checkedZone, "dmarc@example.com", "dmarc@mail.example.com", 1) + "\n" + `mail.example.com. TXT "x"` + "\n"
	each(t, without, func(t *testing.T, in *installation) {
		s := in.serve(quick...)
		s.add("example.com")
		if got := s.firstCheck("example.com").findingIDs(); !slices.Contains(got, "error dmarc.destination-without-mail") {
			t.Fatalf("got %v", got)
		}
		in.setZone(without + "mail.example.com. MX 10 mx.example.com.\n")
		s.checked("example.com", "the finding goes", fullCheckLimit, func(k keptCheck) bool {
			return !slices.Contains(k.findingIDs(), "error dmarc.destination-without-mail")
		})
		s.awaitEvents("example.com", 1)
	})
}

func TestSetupSeesOnlyTheAddressInRUA(t *testing.T) {
	each(t, "", func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		s.add("example.com")
		address := in.reportAddress("default", "example.com", reporting)
		for _, tags := range []string{"rua=mailto:" + address + ".net", "ruf=mailto:" + address, "x=mailto:" + address} {
			in.setZone(`_dmarc.example.com. TXT "v=DMARC1; p=none; ` + tags + `"`)
			s.verify("example.com", "conclusive")
			if got := s.setup("example.com").seen()["dmarc"]; got != "false" {
				t.Errorf("%s: got seen %s want false, as active is", tags, got)
			}
		}
	})
}

func TestSetupKeepsThePolicyOfASubdomain(t *testing.T) {
	each(t, `_dmarc.example.com. TXT "v=DMARC1; p=reject; sp=none"`, func(t *testing.T, in *installation) {
		s := in.serve(reporting)
		s.add("sub.example.com")
		if got := s.setup("sub.example.com").Records[0].Value; !strings.Contains(got, "p=none") || strings.Contains(got, "p=reject") {
			t.Errorf("got %s want a record that keeps the policy none", got)
		}
	})
}

func cursorWithMoreBehindIt(t *testing.T, s *server) {
	s.get("/events?after="+base64.RawURLEncoding.EncodeToString([]byte("1794714845.5junk"))).wantStatus(t, http.StatusUnprocessableEntity)
}
