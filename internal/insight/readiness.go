package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/dmarcd/dmarcd"
)

// Readiness says whether a policy of quarantine or reject would harm mail that its
// owner wants to be delivered, as far as reports can tell.
type Readiness struct {
	// Ready tells that nothing speaks against it.
	Ready bool
	// Reasons are sentences that say why, and what to do about it.
	Reasons []string
	// All counts all messages, Affected those that the policy would be applied to:
	// the ones that are not compliant.
	All, Affected dmarcd.Counts
	// Known are the affected messages of senders that are probably the owner's:
	// known services, and networks from which compliant mail comes too. Unknown are
	// those of all others, which such a policy is made for.
	Known, Unknown dmarcd.Counts
}

// What is enough to tell.
const (
	enoughDays     = 14
	enoughMessages = 100
	// harmless is the part of a known sender's messages that may be affected: some
	// mail breaks when it is forwarded, whatever its owner does.
	harmless = 0.02
	// maxBlamed is how many senders are named.
	maxBlamed = 3
)

// Readiness returns whether the policy for this mail may be tightened.
func (m *Mail) Readiness(ctx context.Context) (Readiness, error) {
	if err := m.recognise(ctx); err != nil {
		return Readiness{}, err
	}
	var r Readiness
	var blamed []Row
	for at := range m.whole.sums {
		of, network := &m.whole.sums[at], &m.whole.networks.list[at]
		if !of.seen {
			continue
		}
		hit, counts := of.affected(), of.counts()
		r.All.Add(counts)
		r.Affected.Add(hit)
		if !network.isKnown() && counts.Compliant == 0 {
			r.Unknown.Add(hit)
			continue
		}
		r.Known.Add(hit)
		if float64(hit.Total()) > harmless*float64(counts.Total()) {
			name, _ := network.label()
			blamed = append(blamed, Row{Key: network.key, Name: name, Counts: counts})
		}
	}
	r.judge(len(m.whole.days), blamed)
	return r, nil
}

// judge comes to the verdict. blamed are the known senders too much of whose mail
// would be affected.
func (r *Readiness) judge(days int, blamed []Row) {
	total := r.All.Total()
	if days < enoughDays {
		r.Reasons = append(r.Reasons, fmt.Sprintf(
			"Reports tell of %s. Wait until they tell of %d, so that what is sent once a week or once a fortnight is among it.", count(int64(days), "day"), enoughDays))
	}
	if total < enoughMessages {
		r.Reasons = append(r.Reasons, fmt.Sprintf(
			"Reports tell of %s. That is too little to conclude from, unless the domain sends no mail at all.", count(total, "message")))
	}
	slices.SortFunc(blamed, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Counts.NonCompliant, a.Counts.NonCompliant), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	for i, source := range blamed {
		if i == maxBlamed {
			r.Reasons = append(r.Reasons, fmt.Sprintf("The same holds for %s more.", count(int64(len(blamed)-i), "sender")))
			break
		}
		r.Reasons = append(r.Reasons, fmt.Sprintf("%s: %s of %s are not compliant. Set up DKIM or SPF for it if it sends for you.",
			source.Name, grouped(source.Counts.NonCompliant), count(source.Counts.Total(), "message")))
	}
	if r.Ready = len(r.Reasons) == 0; !r.Ready {
		return
	}
	r.Reasons = append(r.Reasons, fmt.Sprintf("Of %s from senders that are probably yours %s would be affected.",
		count(total-r.Unknown.Total(), "message"), grouped(r.Known.Total())))
	if unknown := r.Unknown.Total(); unknown > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("The other %s come from strangers, none of whose mail is compliant.", count(unknown, "affected message")))
	}
}

// count writes a number of things.
func count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return grouped(n) + " " + thing + "s"
}

// grouped writes a number with a comma between thousands.
func grouped(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
