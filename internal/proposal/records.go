package proposal

import (
	"errors"
	"fmt"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/mtasts"
)

// errNotRecord is the error for text that receivers do not recognize as a record.
var errNotRecord = errors.New("the text is not such a record")

// CheckDMARC returns nil if receivers use a DMARC record, and its first problem otherwise.
func CheckDMARC(record string) error {
	r, ok := dmarc.Parse(record)
	switch {
	case !ok:
		return errNotRecord
	case len(r.Problems) > 0:
		return fmt.Errorf("%s: %s %q", r.Problems[0].Kind, r.Problems[0].Tag, r.Problems[0].Text)
	case !r.Usable():
		return fmt.Errorf("the record is %s", r.State)
	}
	return nil
}

// CheckDKIM returns nil if verifiers use a DKIM key record, and its first problem otherwise.
func CheckDKIM(record string) error {
	k, ok := dkim.ParseKey(record)
	switch {
	case !ok:
		return errNotRecord
	case len(k.Problems) > 0:
		return fmt.Errorf("%s: %s %q", k.Problems[0].Kind, k.Problems[0].Tag, k.Problems[0].Text)
	case k.State != dkim.Usable || k.Testing || !k.ForEmail():
		return fmt.Errorf("the key is %s, or not for all mail", k.State)
	}
	return nil
}

// CheckMTASTS returns nil if senders use an MTA-STS record, and its first problem otherwise.
func CheckMTASTS(record string) error {
	r, ok := mtasts.ParseRecord(record)
	switch {
	case !ok:
		return errNotRecord
	case len(r.Problems) > 0:
		return fmt.Errorf("%s: %s %q", r.Problems[0].Kind, r.Problems[0].Field, r.Problems[0].Text)
	case !r.Valid:
		return errNotRecord
	}
	return nil
}

// CheckMTASTSPolicy returns nil if senders use an MTA-STS policy, and it allows all these MX
// hosts; its first problem otherwise.
func CheckMTASTSPolicy(policy string, hosts []string) error {
	p := mtasts.ParsePolicy(policy)
	switch {
	case len(p.Problems) > 0:
		return fmt.Errorf("%s: %s %q", p.Problems[0].Kind, p.Problems[0].Field, p.Problems[0].Text)
	case !p.Valid:
		return errNotRecord
	}
	for _, host := range hosts {
		if !p.Allows(host) {
			return fmt.Errorf("the policy does not allow the MX host %q", host)
		}
	}
	return nil
}
