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
func (e *evaluation) isParked() bool {
	return e.request.Purpose == "" && e.facts.MX.Status == mxNull && sendsNothing(e.facts.SPF)
}

// unused reports whether the domain appears not to be used for mail, declared or not.
func (e *evaluation) unused() bool {
	f := e.facts
	quiet := f.MX.Status == mxNull || f.MX.Status == mxNone
	silent := sendsNothing(f.SPF) || f.SPF.Status == string(spf.StatusNone)
	return !e.request.inUse() && quiet && silent && f.DKIM.Namespace == dkim.NamespaceMissing.String()
}

// parked evaluates the protection of a domain that is not used for mail.
func (e *evaluation) parked() {
	f := e.facts
	switch {
	case e.request.Parked:
		e.locked(f.DMARC)
	case e.request.inUse():
	case e.isParked():
		if f.DMARC.Applied == "reject" { // else it is evaluated as any other: only a mark makes it parked
			e.locked(f.DMARC)
		}
	case f.MX.Status == mxNull && f.SPF.Status == string(spf.StatusOK):
		e.addRecord("parked.spf_open", words{"text": f.SPF.Record}, txtRecord(f.Domain, denyAll))
	case f.MX.Status == mxNone && sendsNothing(f.SPF):
		e.addRecord("parked.takes_mail", nil, nullMX(f.Domain))
	}
}

// locked evaluates the policy of a parked domain.
func (e *evaluation) locked(f facts.DMARC) {
	switch {
	case f.Policy == "":
		return // a more severe finding covers this
	case f.Applied == "reject" && !weaker(f.SP, "reject") && !weaker(f.NP, "reject"):
		e.add("parked.locked", nil)
	case f.Applied != "reject" && f.State == stateOK:
		e.addRecord("parked.policy", words{"policy": f.Applied}, e.usable(f))
	}
}

// nullMX returns the record that declares that a domain accepts no mail (RFC 7505).
func nullMX(domain string) dmarcd.DNSRecord {
	return dmarcd.DNSRecord{Name: domain, Type: "MX", Data: "0 ."}
}
