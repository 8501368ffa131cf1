package dnscheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/mtasts"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// mx evaluates whether mail to the domain can be delivered.
func (e *evaluation) mx() {
	f := e.facts.MX
	switch f.Status {
	case mxInconclusive:
		e.add("mx.inconclusive", words{"reason": f.Reason})
	case mxNone:
		if !sendsNothing(e.facts.SPF) || e.request.Purpose != "" {
			e.addRecord("mx.none", nil, nullMX(e.facts.Domain))
		}
	case mxImplicit:
		e.addRecord("mx.implicit", words{"addresses": listed(f.Hosts[0].Addresses)}, nullMX(e.facts.Domain))
	case mxOK:
		for _, host := range f.Hosts {
			e.mxHost(host)
		}
	}
}

func (e *evaluation) mxHost(host facts.MXHost) {
	target := lastAlias(host.Aliases)
	w := words{"name": host.Name, "target": target}
	switch host.Status {
	case hostRoot:
		e.add("mx.null-beside-others", w)
	case hostAddress:
		e.add("mx.address-as-name", w)
	case hostNoSuchName:
		e.add("mx.dangling", w)
	case hostNoAddress:
		e.add("mx.no-address", w)
	case mxInconclusive:
		e.add("mx.inconclusive", words{"reason": "the address of " + host.Name + " could not be looked up"})
	case mxOK:
		if target != "" {
			record := dmarcd.DNSRecord{Name: e.facts.Domain, Type: "MX", Data: strconv.Itoa(host.Preference) + " " + target + "."}
			e.addRecord("mx.alias", w, record)
		}
	}
}

// mtastsFindings maps MTA-STS problems to findings, for both the record and the policy.
var mtastsFindings = map[string]mapping{
	string(mtasts.MissingField):           {"mta-sts.invalid-record", "{part} is missing"},
	string(mtasts.InvalidValue):           {"mta-sts.invalid-record", "{part} has the invalid value {text}"},
	string(mtasts.MalformedField):         {"mta-sts.invalid-record", "{text} cannot be parsed"},
	string(mtasts.EmptyField):             {"mta-sts.invalid-record", "there are two consecutive semicolons"},
	string(mtasts.TooManyFields):          {"mta-sts.invalid-record", "it has more than 100 fields"},
	string(mtasts.LongMaxAge):             {"mta-sts.invalid-record", "max_age is more than {limit} seconds"},
	string(mtasts.TooLarge):               {"mta-sts.invalid-record", "it is longer than {limit} bytes"},
	string(mtasts.DuplicateField):         {"mta-sts.untidy", "{part} occurs twice"},
	string(mtasts.UnknownField):           {"mta-sts.untidy", "the field {part} is unknown"},
	string(mtasts.FieldCase):              {"mta-sts.untidy", "the field {text} is not in lower case"},
	string(mtasts.SpacedVersion):          {"mta-sts.untidy", "a space follows the version"},
	string(mtasts.TrailingSpace):          {"mta-sts.untidy", "the record ends with a space"},
	string(mtasts.EmptyLine):              {"mta-sts.untidy", "a line of the policy is empty"},
	string(mtasts.DuplicateMX):            {"mta-sts.untidy", "the policy lists {text} twice"},
	string(mtasts.ShortMaxAge):            {"mta-sts.short-max-age", ""},
	string(mtasts.MultipleRecords):        {"mta-sts.multiple-records", ""},
	string(mtasts.NearMiss):               {"mta-sts.near-miss", ""},
	string(mtasts.DanglingAlias):          {"mta-sts.dangling-alias", ""},
	string(mtasts.MediaType):              {"mta-sts.media-type", ""},
	string(mtasts.CertificateExpiresSoon): {"mta-sts.certificate-expires", ""},
	string(mtasts.CertificateExpired):     {}, // reported by the result of the fetch
	string(mtasts.CertificateName):        {},
	string(mtasts.CertificateUntrusted):   {},
}

// mtasts evaluates the MTA-STS record and policy.
func (e *evaluation) mtasts() {
	f := e.facts.MTASTS
	record := txtRecord(mtasts.QueryName(e.facts.Domain), "v=STSv1; id=1")
	switch f.Status {
	case inconclusive:
		e.add("mta-sts.inconclusive", words{"reason": f.Reason})
		return
	case mtasts.StatusNone.String():
		if len(f.Problems) == 0 {
			e.addRecord("mta-sts.missing", nil, record)
		}
	}
	for _, p := range f.Problems {
		e.addProblem(mtastsFindings, p, nil, record)
	}
	switch f.Fetch {
	case mtasts.FetchInconclusive.String():
		e.add("mta-sts.unreachable", words{"reason": f.FetchReason})
	case mtasts.FetchNoHost.String():
		e.add("mta-sts.no-host", nil)
	case mtasts.FetchBadCertificate.String():
		e.add("mta-sts.bad-certificate", words{"reason": f.FetchReason})
	case mtasts.FetchRedirect.String():
		e.add("mta-sts.redirect", words{"text": f.Location})
	case mtasts.FetchBadStatus.String():
		e.add("mta-sts.bad-status", words{"count": strconv.Itoa(f.HTTPStatus)})
	}
	for _, p := range f.PolicyProblems {
		how := mtastsFindings[p.Kind]
		if how.id == "mta-sts.invalid-record" {
			w := problemWords(p)
			e.add("mta-sts.invalid-policy", w.with("flaw", fill(how.flaw, w)))
			continue
		}
		e.addProblem(mtastsFindings, p, nil, record)
	}
	if f.Fetch == mtasts.FetchOK.String() {
		e.mtastsMode(f)
	}
}

// mtastsMode reports the mode of a valid policy and mail servers that it does not cover.
func (e *evaluation) mtastsMode(f facts.MTASTS) {
	for _, name := range f.Uncovered {
		e.add("mta-sts.mx-not-covered", words{"name": name})
	}
	for _, name := range f.Unused {
		e.add("mta-sts.pattern-unused", words{"name": name})
	}
	switch {
	case f.Mode == mtasts.ModeTesting.String():
		e.add("mta-sts.testing", nil)
	case f.Mode == mtasts.ModeNone.String():
		e.add("mta-sts.withdrawn", nil)
	case len(f.Uncovered) == 0:
		e.add("mta-sts.enforced", nil)
	}
}

// tlsrptFindings maps TLS-RPT problems to findings.
var tlsrptFindings = map[string]mapping{
	string(tlsrpt.MissingField):      {"tls-rpt.invalid-record", "{part} is missing"},
	string(tlsrpt.MalformedField):    {"tls-rpt.invalid-record", "{text} cannot be parsed"},
	string(tlsrpt.EmptyField):        {"tls-rpt.invalid-record", "there are two consecutive semicolons"},
	string(tlsrpt.TooManyFields):     {"tls-rpt.invalid-record", "it has more than 100 fields"},
	string(tlsrpt.BadURI):            {"tls-rpt.invalid-record", "{text} is not a valid destination"},
	string(tlsrpt.NoDestination):     {"tls-rpt.invalid-record", "it has no mailto: or https: destination"},
	string(tlsrpt.UnsupportedScheme): {"tls-rpt.untidy", "{text} is neither mailto: nor https:"},
	string(tlsrpt.DuplicateURI):      {"tls-rpt.untidy", "{text} is listed twice"},
	string(tlsrpt.TooManyURIs):       {"tls-rpt.untidy", "more than 100 destinations are listed"},
	string(tlsrpt.RepeatedField):     {"tls-rpt.untidy", "{part} occurs twice"},
	string(tlsrpt.UnknownField):      {"tls-rpt.untidy", "the field {part} is unknown"},
	string(tlsrpt.FieldCase):         {"tls-rpt.untidy", "the field {text} is not in lower case"},
	string(tlsrpt.SpacedVersion):     {"tls-rpt.untidy", "a space follows the version"},
	string(tlsrpt.TrailingSpace):     {"tls-rpt.untidy", "the record ends with a space"},
	string(tlsrpt.MultipleRecords):   {"tls-rpt.multiple-records", ""},
	string(tlsrpt.NearMiss):          {"tls-rpt.near-miss", ""},
	string(tlsrpt.DanglingAlias):     {"tls-rpt.dangling-alias", ""},
}

// tlsrpt evaluates the TLS-RPT record.
func (e *evaluation) tlsrpt() {
	f := e.facts.TLSRPT
	wanted := e.request.TLSReportURIs
	there := slices.ContainsFunc(f.Destinations, func(d string) bool { return containsFold(wanted, d) })
	destinations := slices.Clone(f.Destinations)
	if !there {
		destinations = append(destinations, wanted...)
	}
	if len(destinations) == 0 {
		destinations = []string{"mailto:tls-reports@" + e.facts.Domain}
	}
	record := txtRecord(tlsrpt.QueryName(e.facts.Domain), "v=TLSRPTv1; rua="+strings.Join(destinations, ","))
	for _, p := range f.Problems {
		e.addProblem(tlsrptFindings, p, nil, record)
	}
	switch {
	case f.Status == inconclusive:
		e.add("tls-rpt.inconclusive", words{"reason": f.Reason})
	case f.Status == tlsrpt.StatusNone.String() && len(f.Problems) == 0:
		e.addRecord("tls-rpt.missing", nil, record)
	case f.Status == tlsrpt.StatusOK.String() && len(wanted) > 0 && !there:
		e.addRecord("tls-rpt.reports-elsewhere", words{"wanted": strings.Join(wanted, " or ")}, record)
	}
}

// containsFold reports whether list contains text, ignoring case.
func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, text) })
}

// daneFindings maps DANE problems to findings.
var daneFindings = map[string]mapping{
	string(dane.Malformed):         {"dane.unusable-record", "it is truncated"},
	string(dane.PKIXUsage):         {"dane.unusable-record", "its usage is 0 or 1, which SMTP does not support"},
	string(dane.UnknownUsage):      {"dane.unusable-record", "its usage is unknown"},
	string(dane.UnknownSelector):   {"dane.unusable-record", "its selector is unknown"},
	string(dane.UnknownMatching):   {"dane.unusable-record", "its matching type is unknown"},
	string(dane.BadData):           {"dane.unusable-record", "its data does not match its type"},
	string(dane.TLSAWithoutDNSSEC): {"dane.without-dnssec", ""},
	string(dane.MXWithoutDNSSEC):   {"dane.mx-without-dnssec", ""},
	string(dane.NoUsableRecord):    {"dane.no-usable-record", ""},
	string(dane.SingleRecord):      {"dane.single-record", ""},
	string(dane.MissingTLSA):       {"dane.missing-for-host", ""},
	string(dane.NoAddress):         {}, // reported for the MX hosts
	string(dane.TooManyHosts):      {"dane.too-many-hosts", ""},
	string(dane.NoMatch):           {"dane.no-match", "no record matches this certificate"},
	string(dane.ChainNotServed):    {"dane.no-match", "the server does not send the CA certificate that they refer to"},
	string(dane.ChainInvalid):      {"dane.no-match", "the certificate was not issued by the CA that they refer to"},
	string(dane.NameMismatch):      {"dane.no-match", "the certificate is for other host names"},
}

// dane evaluates whether senders can authenticate the mail servers.
func (e *evaluation) dane() {
	f := e.facts.DANE
	if f.Status == inconclusive && e.facts.MX.Status != mxInconclusive {
		e.add("dane.inconclusive", words{"reason": f.Reason})
	}
	for _, p := range f.Problems {
		id := daneFindings[p.Kind].id
		if (id == "dane.unusable-record" || id == "dane.no-usable-record") && ignored(f.Problems, p.At) {
			continue // senders do not read these records at all
		}
		e.addProblem(daneFindings, p, nil, dmarcd.DNSRecord{})
	}
	if f.Status == dane.StatusOK.String() && e.counts["dane.no-match"] == 0 {
		e.add("dane.protected", nil)
	}
}

// ignored reports whether senders ignore the TLSA records of a host because DNSSEC is
// missing.
func ignored(problems []facts.Problem, host string) bool {
	return slices.ContainsFunc(problems, func(p facts.Problem) bool {
		return p.At == host && (p.Kind == string(dane.TLSAWithoutDNSSEC) || p.Kind == string(dane.MXWithoutDNSSEC))
	})
}

// starttls evaluates the certificates of the mail servers.
func (e *evaluation) starttls() {
	f := e.facts.STARTTLS
	for _, p := range f.Problems {
		// DANE ignores the dates of a certificate that a record names (RFC 7672 §3.1.1);
		// MTA-STS does not.
		if slices.Contains(f.Pinned, p.At) && e.facts.MTASTS.Status == mtasts.StatusNone.String() {
			continue
		}
		id := "starttls.certificate-expired"
		if p.Kind == string(mtasts.CertificateExpiresSoon) {
			id = "starttls.certificate-expires"
		}
		e.add(id, problemWords(p))
	}
}

// weakAlgorithms and weakDigests are the DS record values that RFC 8624 deprecates.
var (
	weakAlgorithms = map[int]string{1: "RSAMD5", 3: "DSA", 5: "RSASHA1", 6: "DSA", 7: "RSASHA1", 12: "GOST"}
	weakDigests    = map[int]string{1: "SHA-1 digest", 3: "GOST digest"}
)

// dnssec evaluates the DNSSEC status of the zone.
func (e *evaluation) dnssec() {
	f := e.facts.DNSSEC
	w := words{"zone": f.Zone, "reason": f.Reason}
	e.add("dnssec."+f.Status, w)
	var weak []string
	strong := false
	for _, a := range f.Algorithms {
		if name, ok := weakAlgorithms[a]; ok {
			weak = append(weak, name)
		}
	}
	for _, d := range f.Digests {
		if name, ok := weakDigests[d]; ok {
			weak = append(weak, name)
		} else {
			strong = true
		}
	}
	// Resolvers ignore a weak digest next to a strong one.
	if strong {
		weak = slices.DeleteFunc(weak, func(s string) bool { return strings.HasSuffix(s, "digest") })
	}
	if len(weak) > 0 {
		e.add("dnssec.weak-algorithm", w.with("names", listed(weak)))
	}
}
