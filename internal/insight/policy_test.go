package insight_test

import (
	"testing"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/insight"
)

// TestPolicyInRecord wants the record of a simulation to say what was simulated: test mode and
// a percentage stay where they are part of the policy.
func TestPolicyInRecord(t *testing.T) {
	t.Parallel()
	const record = "v=DMARC1; p=none; t=y; pct=50; rua=mailto:a@example.com"
	for _, row := range []struct {
		policy, want string
	}{
		{"v=DMARC1; p=reject; t=y; pct=50", "v=DMARC1; p=reject; t=y; pct=50; rua=mailto:a@example.com"},
		{"v=DMARC1; p=reject", "v=DMARC1; p=reject; rua=mailto:a@example.com"},
	} {
		policy, _ := dmarc.Parse(row.policy)
		if got := (insight.Policy{Record: policy}).In(record); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}
