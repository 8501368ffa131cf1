package proposal_test

import (
	"strings"
	"testing"

	"github.com/dmarcd/dmarcd/internal/proposal"
)

func TestCheckRecords(t *testing.T) {
	t.Parallel()
	policy := func(text string) error { return proposal.CheckMTASTSPolicy(text, []string{"mx.example.com"}) }
	const key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	for _, tt := range []struct {
		name  string
		check func(string) error
		text  string
		want  string // a part of the error, "" for none
	}{
		{"DMARC", proposal.CheckDMARC, "v=DMARC1; p=reject; rua=mailto:d@example.com", ""},
		{"another record", proposal.CheckDMARC, "v=spf1 -all", "not such a record"},
		{"an unknown policy", proposal.CheckDMARC, "v=DMARC1; p=deny; rua=mailto:d@example.com", "deny"},
		{"a bad destination", proposal.CheckDMARC, "v=DMARC1; p=none; rua=d@example.com", "d@example.com"},
		{"DKIM", proposal.CheckDKIM, "v=DKIM1; k=ed25519; p=" + key, ""},
		{"a revoked key", proposal.CheckDKIM, "v=DKIM1; k=ed25519; p=", "revoked"},
		{"a key in test mode", proposal.CheckDKIM, "v=DKIM1; k=ed25519; t=y; p=" + key, "t"},
		{"a key that is not one", proposal.CheckDKIM, "v=DKIM1; k=rsa; p=AAAA", "p"},
		{"MTA-STS", proposal.CheckMTASTS, "v=STSv1; id=20260101", ""},
		{"no id", proposal.CheckMTASTS, "v=STSv1;", "id"},
		{"not MTA-STS", proposal.CheckMTASTS, "v=STSv2; id=1", "not such a record"},
		{"a policy", policy, "version: STSv1\r\nmode: enforce\r\nmx: *.example.com\r\nmax_age: 604800\r\n", ""},
		{"a policy for another host", policy, "version: STSv1\r\nmode: enforce\r\nmx: mx.example.net\r\nmax_age: 604800\r\n", "mx.example.com"},
		{"a policy without a mode", policy, "version: STSv1\r\nmx: mx.example.com\r\nmax_age: 604800\r\n", "mode"},
	} {
		err := tt.check(tt.text)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
