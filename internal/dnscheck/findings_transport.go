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
		e.add("mx.null_beside_others", w)
	case hostAddress:
		e.add("mx.address_as_name", w)
	case hostNoSuchName:
		e.add("mx.dangling", w)
	case hostNoAddress:
		e.add("mx.no_address", w)
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
	string(mtasts.MissingField):           {"mta_sts.invalid_record", "{part} is missing"},
	string(mtasts.InvalidValue):           {"mta_sts.invalid_record", "{part} has the invalid value {text}"},
	string(mtasts.MalformedField):         {"mta_sts.invalid_record", "{text} cannot be parsed"},
	string(mtasts.EmptyField):             {"mta_sts.invalid_record", "there are two consecutive semicolons"},
	string(mtasts.TooManyFields):          {"mta_sts.invalid_record", "it has more than 100 fields"},
	string(mtasts.LongMaxAge):             {"mta_sts.invalid_record", "max_age is more than {limit} seconds"},
	string(mtasts.TooLarge):               {"mta_sts.invalid_record", "it is longer than {limit} bytes"},
	string(mtasts.DuplicateField):         {"mta_sts.untidy", "{part} occurs twice"},
	string(mtasts.UnknownField):           {"mta_sts.untidy", "the field {part} is unknown"},
	string(mtasts.FieldCase):              {"mta_sts.untidy", "the field {text} is not in lower case"},
	string(mtasts.SpacedVersion):          {"mta_sts.untidy", "a space follows the version"},
	string(mtasts.TrailingSpace):          {"mta_sts.untidy", "the record ends with a space"},
	string(mtasts.EmptyLine):              {"mta_sts.untidy", "a line of the policy is empty"},
	string(mtasts.DuplicateMX):            {"mta_sts.untidy", "the policy lists {text} twice"},
	string(mtasts.ShortMaxAge):            {"mta_sts.short_max_age", ""},
	string(mtasts.MultipleRecords):        {"mta_sts.multiple_records", ""},
	string(mtasts.NearMiss):               {"mta_sts.near_miss", ""},
	string(mtasts.DanglingAlias):          {"mta_sts.dangling_alias", ""},
	string(mtasts.MediaType):              {"mta_sts.media_type", ""},
	string(mtasts.CertificateExpiresSoon): {"mta_sts.certificate_expires", ""},
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
		e.add("mta_sts.inconclusive", words{"reason": f.Reason})
		return
	case mtasts.StatusNone.String():
		if len(f.Problems) == 0 {
			e.addRecord("mta_sts.missing", nil, record)
		}
	}
	for _, p := range f.Problems {
		e.addProblem(mtastsFindings, p, nil, record)
	}
	switch f.Fetch {
	case mtasts.FetchInconclusive.String():
		e.add("mta_sts.unreachable", words{"reason": f.FetchReason})
	case mtasts.FetchNoHost.String():
		e.add("mta_sts.no_host", nil)
	case mtasts.FetchBadCertificate.String():
		e.add("mta_sts.bad_certificate", words{"reason": f.FetchReason})
	case mtasts.FetchRedirect.String():
		e.add("mta_sts.redirect", words{"text": f.Location})
	case mtasts.FetchBadStatus.String():
		e.add("mta_sts.bad_status", words{"count": strconv.Itoa(f.HTTPStatus)})
	}
	for _, p := range f.PolicyProblems {
		how := mtastsFindings[p.Kind]
		if how.id == "mta_sts.invalid_record" {
			w := problemWords(p)
			e.add("mta_sts.invalid_policy", w.with("flaw", fill(how.flaw, w)))
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
		e.add("mta_sts.mx_not_covered", words{"name": name})
	}
	for _, name := range f.Unused {
		e.add("mta_sts.pattern_unused", words{"name": name})
	}
	switch {
	case f.Mode == mtasts.ModeTesting.String():
		e.add("mta_sts.testing", nil)
	case f.Mode == mtasts.ModeNone.String():
		e.add("mta_sts.withdrawn", nil)
	case len(f.Uncovered) == 0:
		e.add("mta_sts.enforced", nil)
	}
}

// tlsrptFindings maps TLS-RPT problems to findings.
var tlsrptFindings = map[string]mapping{
	string(tlsrpt.MissingField):      {"tls_rpt.invalid_record", "{part} is missing"},
	string(tlsrpt.MalformedField):    {"tls_rpt.invalid_record", "{text} cannot be parsed"},
	string(tlsrpt.EmptyField):        {"tls_rpt.invalid_record", "there are two consecutive semicolons"},
	string(tlsrpt.TooManyFields):     {"tls_rpt.invalid_record", "it has more than 100 fields"},
	string(tlsrpt.BadURI):            {"tls_rpt.invalid_record", "{text} is not a valid destination"},
	string(tlsrpt.NoDestination):     {"tls_rpt.invalid_record", "it has no mailto: or https: destination"},
	string(tlsrpt.UnsupportedScheme): {"tls_rpt.untidy", "{text} is neither mailto: nor https:"},
	string(tlsrpt.DuplicateURI):      {"tls_rpt.untidy", "{text} is listed twice"},
	string(tlsrpt.TooManyURIs):       {"tls_rpt.untidy", "more than 100 destinations are listed"},
	string(tlsrpt.RepeatedField):     {"tls_rpt.untidy", "{part} occurs twice"},
	string(tlsrpt.UnknownField):      {"tls_rpt.untidy", "the field {part} is unknown"},
	string(tlsrpt.FieldCase):         {"tls_rpt.untidy", "the field {text} is not in lower case"},
	string(tlsrpt.SpacedVersion):     {"tls_rpt.untidy", "a space follows the version"},
	string(tlsrpt.TrailingSpace):     {"tls_rpt.untidy", "the record ends with a space"},
	string(tlsrpt.MultipleRecords):   {"tls_rpt.multiple_records", ""},
	string(tlsrpt.NearMiss):          {"tls_rpt.near_miss", ""},
	string(tlsrpt.DanglingAlias):     {"tls_rpt.dangling_alias", ""},
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
		e.add("tls_rpt.inconclusive", words{"reason": f.Reason})
	case f.Status == tlsrpt.StatusNone.String() && len(f.Problems) == 0:
		e.addRecord("tls_rpt.missing", nil, record)
	case f.Status == tlsrpt.StatusOK.String() && len(wanted) > 0 && !there:
		e.addRecord("tls_rpt.reports_elsewhere", words{"wanted": strings.Join(wanted, " or ")}, record)
	}
}

// containsFold reports whether list contains text, ignoring case.
func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, text) })
}

// daneFindings maps DANE problems to findings.
var daneFindings = map[string]mapping{
	string(dane.Malformed):         {"dane.unusable_record", "it is truncated"},
	string(dane.PKIXUsage):         {"dane.unusable_record", "its usage is 0 or 1, which SMTP does not support"},
	string(dane.UnknownUsage):      {"dane.unusable_record", "its usage is unknown"},
	string(dane.UnknownSelector):   {"dane.unusable_record", "its selector is unknown"},
	string(dane.UnknownMatching):   {"dane.unusable_record", "its matching type is unknown"},
	string(dane.BadData):           {"dane.unusable_record", "its data does not match its type"},
	string(dane.TLSAWithoutDNSSEC): {"dane.without_dnssec", ""},
	string(dane.MXWithoutDNSSEC):   {"dane.mx_without_dnssec", ""},
	string(dane.NoUsableRecord):    {"dane.no_usable_record", ""},
	string(dane.SingleRecord):      {"dane.single_record", ""},
	string(dane.MissingTLSA):       {"dane.missing_for_host", ""},
	string(dane.NoAddress):         {}, // reported for the MX hosts
	string(dane.TooManyHosts):      {"dane.too_many_hosts", ""},
	string(dane.NoMatch):           {"dane.no_match", "no record matches this certificate"},
	string(dane.ChainNotServed):    {"dane.no_match", "the server does not send the CA certificate that they refer to"},
	string(dane.ChainInvalid):      {"dane.no_match", "the certificate was not issued by the CA that they refer to"},
	string(dane.NameMismatch):      {"dane.no_match", "the certificate is for other host names"},
}

// dane evaluates whether senders can authenticate the mail servers.
func (e *evaluation) dane() {
	f := e.facts.DANE
	if f.Status == inconclusive && e.facts.MX.Status != mxInconclusive {
		e.add("dane.inconclusive", words{"reason": f.Reason})
	}
	for _, p := range f.Problems {
		id := daneFindings[p.Kind].id
		if (id == "dane.unusable_record" || id == "dane.no_usable_record") && ignored(f.Problems, p.At) {
			continue // senders do not read these records at all
		}
		e.addProblem(daneFindings, p, nil, dmarcd.DNSRecord{})
	}
	if f.Status == dane.StatusOK.String() && e.counts["dane.no_match"] == 0 {
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
		id := "starttls.certificate_expired"
		if p.Kind == string(mtasts.CertificateExpiresSoon) {
			id = "starttls.certificate_expires"
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
		e.add("dnssec.weak_algorithm", w.with("names", listed(weak)))
	}
}
