package dnscheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// dmarcFindings maps DMARC problems to findings.
var dmarcFindings = map[string]mapping{
	string(dmarc.MissingTag):           {}, // reported by usability
	string(dmarc.InvalidValue):         {id: "dmarc.invalid_value"},
	string(dmarc.UnknownTag):           {id: "dmarc.unknown_tag"},
	string(dmarc.HistoricTag):          {id: "dmarc.historic_tag"},
	string(dmarc.DuplicateTag):         {id: "dmarc.duplicate_tag"},
	string(dmarc.TagCase):              {id: "dmarc.tag_case"},
	string(dmarc.MalformedElement):     {id: "dmarc.malformed_element"},
	string(dmarc.EmptyElement):         {id: "dmarc.empty_element"},
	string(dmarc.TooManyTags):          {id: "dmarc.too_many_tags"},
	string(dmarc.BadURI):               {id: "dmarc.bad_destination"},
	string(dmarc.UnsupportedScheme):    {id: "dmarc.unsupported_destination"},
	string(dmarc.SizeSuffix):           {id: "dmarc.size_limit"},
	string(dmarc.DuplicateURI):         {id: "dmarc.repeated_destination"},
	string(dmarc.TooManyURIs):          {id: "dmarc.many_destinations"},
	string(dmarc.UnusedFailureOptions): {id: "dmarc.unused_failure_options"},
	string(dmarc.FailureReportsOnPSD):  {id: "dmarc.failure_reports_on_psd"},
}

// tags reports problems of individual tags.
func (e *evaluation) tags(f facts.DMARC) {
	if len(f.Record) > maxRecord {
		e.add("dmarc.long_record", words{"at": f.RecordDomain, "count": strconv.Itoa(len(f.Record))})
	}
	for _, p := range f.Problems {
		id := dmarcFindings[p.Kind].id
		switch {
		case id == "", policyFlaw(p) != "":
			continue // reported by usability
		case p.Part == "pct" && e.counts["dmarc.percentage"] > 0:
			continue
		}
		e.addRecord(id, problemWords(p), e.usable(f))
	}
}

// destinations checks that reports reach their destinations.
func (e *evaluation) destinations(f facts.DMARC) {
	aggregate, wanted := 0, false
	for _, d := range f.Destinations {
		if d.Tag == "rua" {
			aggregate++
			wanted = wanted || strings.EqualFold(d.Address, e.request.ReportAddress)
		}
		e.destination(f, d)
	}
	w := words{"at": f.RecordDomain, "wanted": e.request.ReportAddress}
	fix := e.usable(f)
	switch {
	case aggregate == 0 && e.request.ReportAddress == "" && e.takesNoReports(f.RecordDomain):
		e.add("parked.no_reports", w)
	case aggregate == 0 && !has(f.Problems, string(dmarc.BadURI)):
		e.addRecord("dmarc.no_reports", w, fix)
	case e.request.ReportAddress != "" && !wanted:
		e.addRecord("dmarc.reports_elsewhere", w, fix)
	}
}

func (e *evaluation) destination(f facts.DMARC, d facts.Destination) {
	w := words{"at": f.RecordDomain, "tag": d.Tag, "host": d.Host, "text": d.URI}
	var consent dmarcd.DNSRecord
	if d.Queried != "" {
		consent = txtRecord(d.Queried, "v=DMARC1")
	}
	switch {
	case d.Mail == "no":
		e.add("dmarc.destination_without_mail", w)
	case d.Consent == dmarc.NotAuthorized.String() && e.asks(consent):
		return // one record covers all destinations at that host
	case d.Consent == dmarc.NotAuthorized.String() && d.Queried != "":
		e.addRecord("dmarc.destination_refused", w, consent)
	case d.Consent == dmarc.ConsentUnknown.String() && d.Queried != "":
		e.addRecord("dmarc.destination_unknown", w, consent)
	}
}

// asks reports whether a finding already recommends that record.
func (e *evaluation) asks(record dmarcd.DNSRecord) bool {
	return record != (dmarcd.DNSRecord{}) && slices.ContainsFunc(e.findings, func(f dmarcd.Finding) bool { return f.Record == record })
}
