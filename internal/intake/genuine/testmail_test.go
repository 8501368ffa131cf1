package genuine_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns/dnstest"
)

// TestTest wants the result of each method, and none of SPF behind a relay.
func TestTest(t *testing.T) {
	t.Parallel()
	public := func(a netip.Addr) bool { return !a.IsLoopback() }
	relayed := honest
	relayed.RemoteIP = netip.MustParseAddr("127.0.0.1")
	for _, row := range []struct {
		name, mail string
		relay      bool
		want       dmarcd.TestMail
	}{
		{"SPF alone", mail, false, dmarcd.TestMail{
			From: "reporter.example", SPF: "pass", SPFDomain: "bounces.reporter.example", SPFAligned: true, DMARC: "pass", Policy: "reject", RecordDomain: "reporter.example",
		}},
		{"SPF of another domain", from("a@sender.example"), false, dmarcd.TestMail{
			From: "sender.example", SPF: "pass", SPFDomain: "bounces.reporter.example", DMARC: "fail", Policy: "none", RecordDomain: "sender.example",
		}},
		{"behind a relay", mail, true, dmarcd.TestMail{From: "reporter.example", Relayed: true, Policy: "reject", RecordDomain: "reporter.example"}},
		{"no From", "Subject: x\r\n\r\n", false, dmarcd.TestMail{Problem: "any"}},
	} {
		envelope := honest
		if row.relay {
			envelope = relayed
		}
		got := verifier().Test(t.Context(), strings.NewReader(row.mail), envelope, public)
		if got.Problem != "" && row.want.Problem != "" {
			got.Problem = "any"
		}
		row.want.Client = envelope.RemoteIP
		if diff := cmp.Diff(row.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	v := verifier()
	v.Resolver = dnstest.New(v.Hostname + " MX 10 mx.relay.example\nmx.relay.example A " + honest.RemoteIP.String())
	if got := v.Test(t.Context(), strings.NewReader(mail), honest, public); !got.Relayed || got.SPF != "" {
		t.Errorf("from the mail server of the report domain: got %+v, want no SPF", got)
	}
}
