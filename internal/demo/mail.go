package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/resolver/zone"
	"github.com/dmarcd/dmarcd/spf"
)

// domainDay is one day of a domain, as receivers see it.
type domainDay struct {
	*Scenario
	domain *domain
	ago    int
	zone   *zone.Zone
	policy dmarc.Record
	dice   *rand.Rand
}

func (s *Scenario) dayOf(d *domain, ago int) *domainDay {
	z := s.Zone(s.dayBefore(ago))
	found := dmarc.DiscoverRecord(context.Background(), z, d.Name) // the zone never blocks
	return &domainDay{Scenario: s, domain: d, ago: ago, zone: z, policy: *found.Record, dice: s.random(d.Name, ago)}
}

// ask returns the records of a name on the day.
func (d *domainDay) ask(name string, kind dns.Type) []dns.Record {
	return d.zone.Resolve(context.Background(), dns.Question{Name: name, Type: kind}).Records
}

// mail returns what each of the receivers saw of the domain's mail on the day, in the
// order of the receivers.
func (d *domainDay) mail() [][]aggregate.Record {
	seen := make([][]aggregate.Record, len(d.Receivers))
	for index := range d.domain.Streams {
		stream := &d.domain.Streams[index]
		volume := d.volume(index)
		if volume == 0 {
			continue
		}
		authenticated, asked := d.authenticate(stream), d.asked(stream.From)
		for i := range d.Receivers {
			r := &d.Receivers[i]
			for _, load := range d.distribute(stream.network, around(d.dice, volume*r.Share)) {
				record := authenticated
				record.Addr = stream.network.address(load.host)
				record.Source, record.Count = record.Addr.String(), int64(load.messages)
				record.Disposition, record.Reasons = d.dispose(r, stream, record.Compliant(), asked)
				seen[i] = append(seen[i], record)
			}
		}
	}
	return seen
}

// volume returns how many messages of a stream are sent on the day.
func (d *domainDay) volume(index int) float64 {
	stream, at := &d.domain.Streams[index], d.dayBefore(d.ago)
	if !there(stream.Since, stream.Until, d.ago) {
		return 0
	}
	var full float64
	if stream.Rhythm != "" {
		full = d.Rhythms[stream.Rhythm][at.Weekday()]
	} else {
		week := int(at.Unix() / int64(7*day/time.Second))
		full = wave(at.Weekday(), d.random(d.domain.Name, week*len(d.domain.Streams)+index))
	}
	// Business grows by a fifth over the year, and no day is quite like the other.
	growth := 1.2 - 0.2*float64(d.ago)/daysOfScenario
	return stream.Daily * full * growth * (0.85 + 0.3*d.dice.Float64())
}

// wave is the rhythm of spoofed mail: little most of the time, much on a few days of some
// weeks. The dice are the same on all days of a week.
func wave(weekday time.Weekday, dice *rand.Rand) float64 {
	high, from := dice.Float64(), dice.IntN(4)
	if since := int(weekday) - from; high > 0.7 && since >= 0 && since < 4 {
		return high * (1 - 0.2*float64(since))
	}
	return 0.06
}

// around returns a random count with the mean.
func around(dice *rand.Rand, mean float64) int {
	return max(0, int(math.Round(mean+math.Sqrt(mean)*dice.NormFloat64())))
}

// mostHosts is how many hosts of one network a receiver sees per day.
const mostHosts = 6

// load is how many messages came from a host.
type load struct {
	host, messages int
}

// distribute returns the number of messages per host of a network: of all its hosts, the
// first ones most, or of some that are others every day.
func (d *domainDay) distribute(n *network, count int) []load {
	used, first := min(n.Hosts, mostHosts, 1+count/8), 0
	if n.Hosts > mostHosts {
		first = d.dice.IntN(n.Hosts)
	}
	var loads []load
	for i, left := 0, count; left > 0; i++ {
		messages := left
		if i < used-1 {
			messages = max(1, int(float64(left)*(0.2+0.5*d.dice.Float64())))
		}
		loads = append(loads, load{host: (first + i) % n.Hosts, messages: messages})
		left -= messages
	}
	return loads
}

// authenticate returns what receivers find out about mail of a stream.
func (d *domainDay) authenticate(s *stream) aggregate.Record {
	identity := spf.Identity{IP: s.network.address(0), MailFrom: "bounce@" + s.Envelope}
	found := aggregate.Result(strings.ToLower(spf.Check(context.Background(), d.zone, identity).Result.String()))
	record := aggregate.Record{
		HeaderFrom: s.From, EnvelopeFrom: s.Envelope, DKIM: aggregate.ResultFail, SPF: aggregate.ResultFail,
		SPFResults: []aggregate.SPFResult{{Domain: s.Envelope, Scope: "mfrom", Result: found}},
	}
	if found == aggregate.ResultPass && dmarcd.Covers(d.domain.Name, s.Envelope) {
		record.SPF = aggregate.ResultPass
	}
	if s.Selector != "" {
		signature := d.signature(s)
		record.DKIMResults = append(record.DKIMResults, signature)
		if signature.Result == aggregate.ResultPass {
			record.DKIM = aggregate.ResultPass
		}
	}
	if s.Signed {
		record.DKIMResults = append(record.DKIMResults, aggregate.DKIMResult{Domain: s.network.Domain, Selector: "k2024", Result: aggregate.ResultPass})
	}
	return record
}

// signature returns the result of the domain's signature.
func (d *domainDay) signature(s *stream) aggregate.DKIMResult {
	result := aggregate.DKIMResult{Domain: d.domain.Name, Selector: s.Selector, Result: aggregate.ResultPass}
	switch {
	case s.List:
		result.Result, result.HumanResult = aggregate.ResultFail, "body hash did not verify"
	case dkim.LookupKey(context.Background(), d.zone, s.Selector, d.domain.Name).Status != dkim.StatusFound:
		result.Result, result.HumanResult = aggregate.ResultPermerror, "no key for signature"
	}
	return result
}

// asked returns what the policy asks for mail of an author domain that fails.
func (d *domainDay) asked(from string) aggregate.Policy {
	subject := dmarc.Itself
	if from != d.domain.Name {
		subject = dmarc.Subdomain
	}
	policy, _ := d.policy.Policy(subject)
	return aggregate.Policy(policy.String())
}

// dispose returns what a receiver did with mail, and why where it is not what the policy
// asks for.
func (d *domainDay) dispose(r *receiver, s *stream, compliant bool, asked aggregate.Policy) (aggregate.Policy, []aggregate.Reason) {
	switch {
	case compliant && asked != aggregate.PolicyNone:
		return aggregate.PolicyPass, nil
	case compliant:
		return aggregate.PolicyNone, nil
	case d.policy.Testing:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "policy_test_mode"}}
	case asked == aggregate.PolicyNone:
		return asked, nil
	case r.Trusts && s.List:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "mailing_list", Comment: "arc=pass"}}
	case r.Trusts && s.Forwarded:
		return aggregate.PolicyNone, []aggregate.Reason{{Type: "trusted_forwarder"}}
	case r.Lenient && asked == aggregate.PolicyReject && d.dice.Float64() < 0.2:
		return aggregate.PolicyQuarantine, []aggregate.Reason{{Type: "local_policy", Comment: "not sure enough to reject"}}
	default:
		return asked, nil
	}
}
