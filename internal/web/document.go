package web

import (
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// newDocument returns a report for display, without its records.
func newDocument(report dmarcd.Report) ReportDocument {
	document := ReportDocument{Report: report}
	switch r := wire.NewReport("", report).(type) { // nil if it has expired
	case wire.AggregateReport:
		document.Facts = aggregateFacts(r)
	case wire.FailureReport:
		document.Facts = failureFacts(r)
	case wire.TLSReport:
		var f factList
		f.add("Contact", r.ContactInfo)
		document.Facts, document.Policies = f, r.Policies
	}
	return document
}

// factList collects the facts in a report.
type factList []insight.Fact

func (f *factList) add(name string, value *string) {
	if value != nil && *value != "" {
		*f = append(*f, insight.Fact{Name: name, Value: *value})
	}
}

func (f *factList) addAll(name string, values []string) {
	joined := strings.Join(values, "; ")
	f.add(name, &joined)
}

func aggregateFacts(r wire.AggregateReport) []insight.Fact {
	var f factList
	f.add("Contact", r.Email)
	f.add("More information", r.ExtraContact)
	policy := []string{}
	for _, tag := range []struct {
		name  string
		value *string
	}{
		{"p", r.P},
		{"sp", r.SP},
		{"np", r.NP},
		{"adkim", r.ADKIM},
		{"aspf", r.ASPF},
		{"pct", r.Percent},
		{"fo", r.FailureOptions},
		{"psd", r.PSD},
		{"testing", r.Testing},
	} {
		if tag.value != nil && *tag.value != "" {
			policy = append(policy, tag.name+"="+*tag.value)
		}
	}
	f.addAll("Policy seen by the reporter", policy)
	f.add("Discovery method", r.DiscoveryMethod)
	f.add("Generator", r.Generator)
	f.addAll("Errors", r.Errors)
	form := map[string]string{"9990": "RFC 9990", "7489": "RFC 7489", "draft": "a draft before RFC 7489"}[r.Flavour]
	f.add("Form", &form)
	sources := strconv.Itoa(r.Sources)
	f.add("Addresses", &sources)
	return f
}

func failureFacts(r wire.FailureReport) []insight.Fact {
	var f factList
	f.add("Failure", r.AuthFailure)
	f.add("Failed to align", r.IdentityAlignment)
	f.add("Sent from", r.SourceIP)
	f.add("From", r.From)
	f.add("Envelope sender", r.OriginalMailFrom)
	f.addAll("Envelope recipients", r.OriginalRcptTo)
	f.add("Message id", r.MessageID)
	f.add("Result", r.DeliveryResult)
	f.add("Authentication results", r.AuthenticationResults)
	f.add("DKIM domain", r.DKIMDomain)
	f.add("DKIM selector", r.DKIMSelector)
	f.add("DKIM identity", r.DKIMIdentity)
	f.addAll("SPF records", r.SPFDNS)
	f.add("Reported by", r.ReportingMTA)
	f.add("Program", r.UserAgent)
	return f
}
