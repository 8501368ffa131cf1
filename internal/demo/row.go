package demo

import (
	"math/rand/v2"

	"github.com/dmarcd/dmarcd/aggregate"
)

// row is a record of an aggregate report, with its stream.
type row struct {
	stream *stream
	record aggregate.Record
}

// rows returns what each of the receivers saw of a domain's mail on a day, in the
// order of the receivers.
func (s *Scenario) rows(d *domain, ago int, dice *rand.Rand) [][]row {
	seen := make([][]row, len(receivers))
	for index := range d.streams {
		// No day is quite like the other.
		volume := s.volume(d, index, ago) * (0.85 + 0.3*dice.Float64())
		for i := range receivers {
			r := &receivers[i]
			count := poisson(dice, volume*r.share)
			for _, load := range distribute(d.streams[index].mailNetwork, count, dice) {
				seen[i] = append(seen[i], d.row(r, &d.streams[index], load, ago, dice))
			}
		}
	}
	return seen
}

// mostHosts is how many hosts of one mailNetwork a receiver sees per day.
const mostHosts = 6

// load is how many messages came from a host.
type load struct {
	host, messages int
}

// distribute returns the number of messages per host of a mailNetwork. Spoofers use other
// hosts every day; a service uses all of its own, the first ones most.
func distribute(h *mailNetwork, count int, dice *rand.Rand) []load {
	used, first := min(h.hosts, mostHosts, 1+count/8), 0
	if h.hosts > mostHosts {
		used, first = min(mostHosts, 1+count/6), dice.IntN(h.hosts)
	}
	var loads []load
	for i, left := 0, count; left > 0; i++ {
		messages := left
		if i < used-1 {
			messages = max(1, int(float64(left)*(0.2+0.5*dice.Float64())))
		}
		loads = append(loads, load{host: (first + i) % h.hosts, messages: messages})
		left -= messages
	}
	return loads
}

// row returns what a receiver saw of the messages of a stream from one host.
func (d *domain) row(r *receiver, s *stream, l load, ago int, dice *rand.Rand) row {
	addr := s.mailNetwork.address(l.host)
	record := aggregate.Record{
		Addr: addr, Source: addr.String(), Count: int64(l.messages),
		HeaderFrom: orDomain(s.from, d), EnvelopeFrom: orDomain(s.envelope, d),
		DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		DKIMResults: d.signatures(s, ago),
	}
	spf := d.spfResult(s.mailNetwork, record.EnvelopeFrom, ago)
	record.SPFResults = []aggregate.SPFResult{{Domain: record.EnvelopeFrom, Scope: "mfrom", Result: spf}}
	if spf == aggregate.ResultPass && record.EnvelopeFrom != s.mailNetwork.envelope() {
		record.SPF = aggregate.ResultPass
	}
	for _, signature := range record.DKIMResults {
		if signature.Domain == d.name && signature.Result == aggregate.ResultPass {
			record.DKIM = aggregate.ResultPass
		}
	}
	d.dispose(r, s, &record, ago, dice)
	return row{stream: s, record: record}
}

func orDomain(name string, d *domain) string {
	if name == "" {
		return d.name
	}
	return name
}

// signatures returns the results of the signatures that mail of a stream has.
func (d *domain) signatures(s *stream, ago int) []aggregate.DKIMResult {
	var results []aggregate.DKIMResult
	if s.selector != "" && d.signs(s.selector, ago) {
		own := aggregate.DKIMResult{Domain: d.name, Selector: s.selector, Result: aggregate.ResultPass}
		switch {
		case s.list:
			own.Result, own.HumanResult = aggregate.ResultFail, "body hash did not verify"
		case !d.published(s.selector, ago):
			own.Result, own.HumanResult = aggregate.ResultPermerror, "no key for signature"
		}
		results = append(results, own)
	}
	if s.signs {
		results = append(results, aggregate.DKIMResult{Domain: s.mailNetwork.domain, Selector: "k2024", Result: aggregate.ResultPass})
	}
	return results
}

// dispose decides what the receiver did with the messages of a record.
func (d *domain) dispose(r *receiver, s *stream, record *aggregate.Record, ago int, dice *rand.Rand) {
	p := d.policyAt(ago)
	asked := p.applies(d, record.HeaderFrom)
	switch {
	case record.Compliant() && asked == aggregate.PolicyNone:
		record.Disposition = aggregate.PolicyNone
	case record.Compliant():
		record.Disposition = aggregate.PolicyPass
	case p.testing:
		record.Disposition = aggregate.PolicyNone
		record.Reasons = []aggregate.Reason{{Type: "policy_test_mode"}}
	default:
		disposition, reason, overrides := r.override(s, asked, dice.Float64())
		record.Disposition = disposition
		if overrides {
			record.Reasons = []aggregate.Reason{reason}
		}
	}
}
