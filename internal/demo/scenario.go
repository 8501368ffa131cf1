package demo

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

const (
	none       = aggregate.PolicyNone
	quarantine = aggregate.PolicyQuarantine
	reject     = aggregate.PolicyReject
)

// plot returns what happens to the domains.
func plot() []domain {
	return []domain{harbourlight(), tinwhistle(), oldmill(), brightpay(), fernlea(), paperkite()}
}

// harbourlight does everything right. What fails is a mailing list, and what
// attackers try.
func harbourlight() domain {
	return domain{
		name: "harbourlight.example", team: FirstTeam, purpose: dmarcd.PurposeBusiness,
		policies: []policy{{since: 365, p: quarantine}, {since: 301, p: reject}},
		spf: []sending{{
			since: 365, ip: []*mailNetwork{harbourlightOffice}, include: []*mailNetwork{cloudpost, receiptly}, all: "-all",
		}},
		keys: []key{
			{selector: "mail", since: 365, bits: 2048},
			{selector: "selector1", since: 365, bits: 2048},
			{selector: "selector2", since: 250, bits: 2048},
			{selector: "s1", since: 365, bits: 2048},
			{selector: "pm", since: 365, bits: 2048},
		},
		delegated:  map[string]*mailNetwork{"news.harbourlight.example": sendwell},
		mx:         []*mailNetwork{harbourlightOffice},
		signed:     true,
		tlsReports: 90,
		streams: append(spoofed("", 14),
			stream{mailNetwork: harbourlightOffice, perDay: 420, rhythm: office, selector: "mail"},
			stream{mailNetwork: cloudpost, perDay: 900, rhythm: office, selector: "selector1"},
			stream{mailNetwork: sendwell, perDay: 5200, rhythm: newsletter, envelope: "news.harbourlight.example", selector: "s1", signs: true},
			stream{mailNetwork: receiptly, perDay: 650, rhythm: steady, from: "shop.harbourlight.example", envelope: receiptly.envelope(), selector: "pm", signs: true},
			stream{mailNetwork: almaMail, perDay: 24, rhythm: office, selector: "selector1", forwarded: true},
			stream{mailNetwork: listhaven, perDay: 11, rhythm: office, envelope: listhaven.envelope(), selector: "selector1", signs: true, forwarded: true, list: true},
		),
	}
}

// tinwhistle is in trouble. Its support software sent as the domain for months
// before anybody knew; a key was taken away too early and missed for a week; the
// policy was tightened too soon and taken back, and is being tried again since
// yesterday; and since three weeks ago its SPF record needs too many lookups, so that
// mail from its own office fails.
func tinwhistle() domain {
	return domain{
		name: "tinwhistle.example", team: FirstTeam, purpose: dmarcd.PurposeBusiness,
		policies: []policy{{since: 365, p: none}, {since: 66, p: quarantine}, {since: 52, p: none}, {since: 1, p: quarantine, testing: true}},
		spf: []sending{
			{since: 365, include: []*mailNetwork{cloudpost, sendwell}, ip: []*mailNetwork{tinwhistleOffice}, all: "~all"},
			{since: 96, include: []*mailNetwork{cloudpost, sendwell, deskhelp}, ip: []*mailNetwork{tinwhistleOffice}, all: "~all"},
			{since: 21, terms: "a mx ", include: []*mailNetwork{cloudpost, deskhelp, webstack, sendwell}, all: "~all"},
		},
		keys: []key{
			{selector: "mail", since: 365, until: 118, bits: 1024},
			{selector: "mail", since: 111, bits: 1024},
			{selector: "selector1", since: 365, bits: 2048},
			{selector: "dkim", since: 96, bits: 2048},
		},
		mx:             []*mailNetwork{cloudpost},
		failureReports: true,
		streams: append(spoofed("", 45),
			stream{mailNetwork: tinwhistleOffice, perDay: 160, rhythm: office},
			stream{mailNetwork: cloudpost, perDay: 540, rhythm: office, selector: "selector1"},
			stream{mailNetwork: sendwell, perDay: 1900, rhythm: newsletter, envelope: sendwell.envelope(), selector: "mail", signs: true},
			stream{mailNetwork: deskhelp, perDay: 210, rhythm: office, since: 212, until: 96, envelope: deskhelp.envelope(), signs: true},
			stream{mailNetwork: deskhelp, perDay: 240, rhythm: office, since: 96, envelope: deskhelp.envelope(), selector: "dkim", signs: true},
			stream{mailNetwork: webstack, perDay: 75, rhythm: steady, envelope: webstack.envelope()},
			stream{mailNetwork: almaMail, perDay: 9, rhythm: office, selector: "selector1", forwarded: true},
		),
	}
}

// oldmill sends nothing and says so. Everything that is reported is spoofed.
func oldmill() domain {
	return domain{
		name:     "oldmill.example",
		team:     FirstTeam,
		parked:   true,
		policies: []policy{{since: 365, p: reject}},
		spf:      []sending{{since: 365, all: "-all"}},
		streams:  append(spoofed("", 130), spoofed("mail.oldmill.example", 30)...),
	}
}

// brightpay is an attractive target for spoofing, and has no enforced policy.
func brightpay() domain {
	return domain{
		name: "brightpay.example", team: FirstTeam, purpose: dmarcd.PurposeBusiness,
		policies: []policy{{since: 365, p: none}},
		spf: []sending{{
			since: 365, ip: []*mailNetwork{brightpayOffice}, include: []*mailNetwork{cloudpost}, all: "~all",
		}},
		keys: []key{
			{selector: "mail", since: 365, bits: 2048},
			{selector: "selector1", since: 365, bits: 2048},
		},
		mx:             []*mailNetwork{brightpayOffice},
		failureReports: true,
		streams: append(append(spoofed("", 7500), spoofed("secure.brightpay.example", 1200)...),
			stream{mailNetwork: brightpayOffice, perDay: 1700, rhythm: steady, selector: "mail"},
			stream{mailNetwork: cloudpost, perDay: 380, rhythm: office, selector: "selector1"},
		),
	}
}

// fernlea goes the whole way from watching to rejecting.
func fernlea() domain {
	return domain{
		name: "fernlea.example", team: FirstTeam, purpose: dmarcd.PurposeEducation,
		policies: []policy{
			{since: 365, p: none},
			{since: 231, p: quarantine, testing: true},
			{since: 201, p: quarantine},
			{since: 61, p: reject},
		},
		spf: []sending{
			{since: 365, ip: []*mailNetwork{fernleaCampus}, all: "~all"},
			{since: 287, ip: []*mailNetwork{fernleaCampus}, include: []*mailNetwork{cloudpost}, all: "~all"},
			{since: 74, ip: []*mailNetwork{fernleaCampus}, include: []*mailNetwork{cloudpost}, all: "-all"},
		},
		keys: []key{
			{selector: "selector1", since: 287, bits: 2048},
			{selector: "k1", since: 252, bits: 2048},
			{selector: "default", since: 219, bits: 2048},
		},
		mx:         []*mailNetwork{cloudpost},
		tlsReports: 60,
		streams: append(spoofed("", 22),
			stream{mailNetwork: fernleaCampus, perDay: 130, rhythm: office, selector: "default"},
			stream{mailNetwork: cloudpost, perDay: 460, rhythm: office, selector: "selector1"},
			stream{mailNetwork: sendwell, perDay: 1400, rhythm: newsletter, from: "news.fernlea.example", envelope: sendwell.envelope(), selector: "k1", signs: true},
			stream{mailNetwork: listhaven, perDay: 26, rhythm: office, envelope: listhaven.envelope(), selector: "selector1", signs: true, forwarded: true, list: true},
			stream{mailNetwork: almaMail, perDay: 40, rhythm: office, selector: "selector1", forwarded: true},
		),
	}
}

// paperkite belongs to another team. It is new, small and on its way.
func paperkite() domain {
	return domain{
		name: "paperkite.example", team: SecondTeam, purpose: dmarcd.PurposeBusiness,
		policies: []policy{{since: 365, p: none}, {since: 60, p: quarantine}},
		spf:      []sending{{since: 365, include: []*mailNetwork{cloudpost, sendwell}, all: "~all"}},
		keys: []key{
			{selector: "selector1", since: 365, bits: 2048},
			{selector: "k1", since: 80, bits: 2048},
		},
		mx: []*mailNetwork{cloudpost},
		streams: []stream{
			{mailNetwork: cloudpost, since: 120, perDay: 90, rhythm: office, selector: "selector1"},
			{mailNetwork: sendwell, since: 120, until: 80, perDay: 300, rhythm: newsletter, envelope: sendwell.envelope(), signs: true},
			{mailNetwork: sendwell, since: 80, perDay: 300, rhythm: newsletter, envelope: sendwell.envelope(), selector: "k1", signs: true},
			{mailNetwork: almaMail, since: 110, perDay: 4, rhythm: office, selector: "selector1", forwarded: true},
		},
	}
}

// spoofed returns mail of attackers who pretend to be the author domain, "" for the
// domain itself: so many messages a day in all when a wave is at its highest.
func spoofed(from string, perDay float64) []stream {
	streams := make([]stream, len(spoofers))
	for i, h := range spoofers {
		streams[i] = stream{mailNetwork: h, perDay: perDay / float64(len(spoofers)), rhythm: waves, from: from, envelope: from}
	}
	return streams
}
