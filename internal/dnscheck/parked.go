package dnscheck

import (
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/spf"
)

// denyAll is the SPF record of a domain that sends no mail (RFC 7208 §10.1.2).
const denyAll = "v=spf1 -all"

// takesMail reports whether mail can be delivered to the domain, as far as known.
func takesMail(f facts.MX) bool { return f.Status == mxOK || f.Status == mxImplicit }

// sendsNothing reports whether the SPF record allows no sender.
func sendsNothing(f facts.SPF) bool {
	return strings.EqualFold(strings.Join(strings.Fields(f.Record), " "), denyAll)
}

// isParked reports whether the domain declares that it is not used for mail.
func (j *judgement) isParked() bool {
	return j.request.Purpose == "" && j.facts.MX.Status == mxNull && sendsNothing(j.facts.SPF)
}

// unused reports whether the domain appears not to be used for mail, declared or not.
func (j *judgement) unused() bool {
	f := j.facts
	quiet := f.MX.Status == mxNull || f.MX.Status == mxNone
	silent := sendsNothing(f.SPF) || f.SPF.Status == string(spf.StatusNone)
	return !j.request.inUse() && quiet && silent && f.DKIM.Namespace == dkim.NamespaceMissing.String()
}

// parked judges the protection of a domain that is not used for mail.
func (j *judgement) parked() {
	f := j.facts
	switch {
	case j.request.Parked:
		j.locked(f.DMARC)
	case j.request.inUse():
	case j.isParked():
		if f.DMARC.Applied == "reject" { // else it is judged as any other: only a mark makes it parked
			j.locked(f.DMARC)
		}
	case f.MX.Status == mxNull && f.SPF.Status == string(spf.StatusOK):
		j.addRecord("parked.spf-open", words{"text": f.SPF.Record}, txtRecord(f.Domain, denyAll))
	case f.MX.Status == mxNone && sendsNothing(f.SPF):
		j.addRecord("parked.takes-mail", nil, nullMX(f.Domain))
	}
}

// locked judges the policy of a parked domain.
func (j *judgement) locked(f facts.DMARC) {
	switch {
	case f.Policy == "":
		return // a more severe finding covers this
	case f.Applied == "reject" && !weaker(f.SP, "reject") && !weaker(f.NP, "reject"):
		j.add("parked.locked", nil)
	case f.Applied != "reject" && f.State == stateOK:
		j.addRecord("parked.policy", words{"policy": f.Applied}, j.usable(f))
	}
}

// nullMX returns the record that declares that a domain accepts no mail (RFC 7505).
func nullMX(domain string) dmarcd.DNSRecord {
	return dmarcd.DNSRecord{Name: domain, Type: "MX", Data: "0 ."}
}
