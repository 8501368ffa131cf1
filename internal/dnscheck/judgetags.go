package dnscheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// dmarcTellings says how the problems of a DMARC record are told.
var dmarcTellings = map[string]telling{
	string(dmarc.MissingTag):           {}, // told by what becomes of the policy
	string(dmarc.InvalidValue):         {id: "dmarc.invalid-value"},
	string(dmarc.UnknownTag):           {id: "dmarc.unknown-tag"},
	string(dmarc.HistoricTag):          {id: "dmarc.historic-tag"},
	string(dmarc.DuplicateTag):         {id: "dmarc.duplicate-tag"},
	string(dmarc.TagCase):              {id: "dmarc.tag-case"},
	string(dmarc.MalformedElement):     {id: "dmarc.malformed-element"},
	string(dmarc.EmptyElement):         {id: "dmarc.empty-element"},
	string(dmarc.TooManyTags):          {id: "dmarc.too-many-tags"},
	string(dmarc.BadURI):               {id: "dmarc.bad-destination"},
	string(dmarc.UnsupportedScheme):    {id: "dmarc.unsupported-destination"},
	string(dmarc.SizeSuffix):           {id: "dmarc.size-limit"},
	string(dmarc.DuplicateURI):         {id: "dmarc.repeated-destination"},
	string(dmarc.TooManyURIs):          {id: "dmarc.many-destinations"},
	string(dmarc.UnusedFailureOptions): {id: "dmarc.unused-failure-options"},
	string(dmarc.FailureReportsOnPSD):  {id: "dmarc.failure-reports-on-psd"},
}

// tags tells what is wrong with single tags of the record.
func (j *judgement) tags(f dmarcd.DMARCFacts) {
	if len(f.Record) > maxRecord {
		j.say("dmarc.long-record", words{"at": f.RecordDomain, "count": strconv.Itoa(len(f.Record))})
	}
	for _, p := range f.Problems {
		id := dmarcTellings[p.Kind].id
		switch {
		case id == "", policyFlaw(p) != "":
			continue // told by what becomes of the policy
		case p.Part == "pct" && j.told["dmarc.percentage"] > 0:
			continue
		}
		j.sayRecord(id, problemWords(p), j.repaired(f, func(r *dmarc.Record) {
			if p.Kind == string(dmarc.FailureReportsOnPSD) {
				r.RUF = nil
			}
			if r.P == dmarc.Unstated {
				r.P = dmarc.None
			}
		}))
	}
}

// destinations tells whether reports reach somebody.
func (j *judgement) destinations(f dmarcd.DMARCFacts) {
	aggregate, wanted := 0, false
	for _, d := range f.Destinations {
		if d.Tag == "rua" {
			aggregate++
			wanted = wanted || strings.EqualFold(d.Address, j.request.ReportAddress)
		}
		j.destination(f, d)
	}
	w := words{"at": f.RecordDomain, "wanted": j.request.ReportAddress}
	fix := j.repaired(f, func(r *dmarc.Record) { j.addAddress(r, f.RecordDomain) })
	switch {
	case aggregate == 0 && j.request.ReportAddress == "" && j.takesNoReports(f.RecordDomain):
		j.say("parked.no-reports", w)
	case aggregate == 0 && !has(f.Problems, string(dmarc.BadURI)):
		j.sayRecord("dmarc.no-reports", w, fix)
	case j.request.ReportAddress != "" && !wanted:
		j.sayRecord("dmarc.reports-elsewhere", w, fix)
	}
}

func (j *judgement) destination(f dmarcd.DMARCFacts, d dmarcd.DestinationFacts) {
	w := words{"at": f.RecordDomain, "tag": d.Tag, "host": d.Host, "text": d.URI}
	consent := ""
	if d.Queried != "" {
		consent = txtRecord(d.Queried, "v=DMARC1")
	}
	switch {
	case d.Mail == "no":
		j.say("dmarc.destination-without-mail", w)
	case d.Consent == dmarc.NotAuthorized.String() && j.asks(consent):
		return // one record is for all destinations at that host
	case d.Consent == dmarc.NotAuthorized.String() && consent != "":
		j.sayRecord("dmarc.destination-refused", w, consent)
	case d.Consent == dmarc.ConsentUnknown.String() && consent != "":
		j.sayRecord("dmarc.destination-unknown", w, consent)
	}
}

// asks reports whether a finding asks for that record already.
func (j *judgement) asks(record string) bool {
	return record != "" && slices.ContainsFunc(j.findings, func(f dmarcd.Finding) bool { return f.Record == record })
}
