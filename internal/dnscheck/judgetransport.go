package dnscheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dane"
	"github.com/dmarcd/dmarcd/mtasts"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// mx tells whether mail to the domain can be delivered.
func (j *judgement) mx() {
	f := j.facts.MX
	switch f.Status {
	case mxInconclusive:
		j.say("mx.inconclusive", words{"reason": f.Reason})
	case mxNone:
		if !sendsNothing(j.facts.SPF) || j.request.Purpose != "" {
			j.sayRecord("mx.none", nil, nullMX(j.facts.Domain))
		}
	case mxImplicit:
		j.sayRecord("mx.implicit", words{"addresses": listed(f.Hosts[0].Addresses)}, nullMX(j.facts.Domain))
	case mxOK:
		for _, host := range f.Hosts {
			j.mxHost(host)
		}
	}
}

func (j *judgement) mxHost(host dmarcd.MXHost) {
	target := lastAlias(host.Aliases)
	w := words{"name": host.Name, "target": target}
	switch host.Status {
	case hostRoot:
		j.say("mx.null-beside-others", w)
	case hostAddress:
		j.say("mx.address-as-name", w)
	case hostNoSuchName:
		j.say("mx.dangling", w)
	case hostNoAddress:
		j.say("mx.no-address", w)
	case mxInconclusive:
		j.say("mx.inconclusive", words{"reason": "the address of " + host.Name + " could not be looked up"})
	case mxOK:
		if target != "" {
			record := j.facts.Domain + ". MX " + strconv.Itoa(host.Preference) + " " + target + "."
			j.sayRecord("mx.alias", w, record)
		}
	}
}

// mtastsTellings says how the problems of MTA-STS are told, in a record and in a
// policy.
var mtastsTellings = map[string]telling{
	string(mtasts.MissingField):         {"mta-sts.invalid-record", "{part} is missing"},
	string(mtasts.InvalidValue):         {"mta-sts.invalid-record", "{part} cannot have the value {text}"},
	string(mtasts.MalformedField):       {"mta-sts.invalid-record", "{text} cannot be read"},
	string(mtasts.EmptyField):           {"mta-sts.invalid-record", "there is nothing between two semicolons"},
	string(mtasts.TooManyFields):        {"mta-sts.invalid-record", "it has more than 100 fields"},
	string(mtasts.LongMaxAge):           {"mta-sts.invalid-record", "max_age is more than {limit} seconds"},
	string(mtasts.TooLarge):             {"mta-sts.invalid-record", "it has more than {limit} bytes"},
	string(mtasts.DuplicateField):       {"mta-sts.untidy", "{part} appears twice"},
	string(mtasts.UnknownField):         {"mta-sts.untidy", "there is a field {part}, which does not exist"},
	string(mtasts.FieldCase):            {"mta-sts.untidy", "the field {text} is not in lower case"},
	string(mtasts.SpacedVersion):        {"mta-sts.untidy", "a space follows the version"},
	string(mtasts.TrailingSpace):        {"mta-sts.untidy", "a space ends the record"},
	string(mtasts.EmptyLine):            {"mta-sts.untidy", "a line of the policy is empty"},
	string(mtasts.DuplicateMX):          {"mta-sts.untidy", "the policy lists {text} twice"},
	string(mtasts.ShortMaxAge):          {"mta-sts.short-max-age", ""},
	string(mtasts.MultipleRecords):      {"mta-sts.multiple-records", ""},
	string(mtasts.NearMiss):             {"mta-sts.near-miss", ""},
	string(mtasts.DanglingAlias):        {"mta-sts.dangling-alias", ""},
	string(mtasts.MediaType):            {"mta-sts.media-type", ""},
	string(mtasts.CertificateExpired):   {}, // told by what fetching came to
	string(mtasts.CertificateName):      {},
	string(mtasts.CertificateUntrusted): {},
}

// mtasts tells whether senders insist on encryption.
func (j *judgement) mtasts() {
	f := j.facts.MTASTS
	record := txtRecord(mtasts.QueryName(j.facts.Domain), "v=STSv1; id=1")
	switch f.Status {
	case inconclusive:
		j.say("mta-sts.inconclusive", words{"reason": f.Reason})
		return
	case mtasts.StatusNone.String():
		if len(f.Problems) == 0 {
			j.sayRecord("mta-sts.missing", nil, record)
		}
	}
	for _, p := range f.Problems {
		j.tell(mtastsTellings, p, nil, record)
	}
	switch f.Fetch {
	case mtasts.FetchInconclusive.String():
		j.say("mta-sts.unreachable", words{"reason": f.FetchReason})
	case mtasts.FetchNoHost.String():
		j.say("mta-sts.no-host", nil)
	case mtasts.FetchBadCertificate.String():
		j.say("mta-sts.bad-certificate", words{"reason": f.FetchReason})
	case mtasts.FetchRedirect.String():
		j.say("mta-sts.redirect", words{"text": f.Location})
	case mtasts.FetchBadStatus.String():
		j.say("mta-sts.bad-status", words{"count": strconv.Itoa(f.HTTPStatus)})
	}
	for _, p := range f.PolicyProblems {
		how := mtastsTellings[p.Kind]
		if how.id == "mta-sts.invalid-record" {
			w := problemWords(p)
			j.say("mta-sts.invalid-policy", w.with("flaw", fill(how.flaw, w)))
			continue
		}
		j.tell(mtastsTellings, p, nil, record)
	}
	if f.Fetch == mtasts.FetchOK.String() {
		j.mtastsMode(f)
	}
}

// mtastsMode tells what a valid policy asks for and whether it fits the servers.
func (j *judgement) mtastsMode(f dmarcd.MTASTSFacts) {
	for _, name := range f.Uncovered {
		j.say("mta-sts.mx-not-covered", words{"name": name})
	}
	for _, name := range f.Unused {
		j.say("mta-sts.pattern-unused", words{"name": name})
	}
	switch {
	case f.Mode == mtasts.ModeTesting.String():
		j.say("mta-sts.testing", nil)
	case f.Mode == mtasts.ModeNone.String():
		j.say("mta-sts.withdrawn", nil)
	case len(f.Uncovered) == 0:
		j.say("mta-sts.enforced", nil)
	}
}

// tlsrptTellings says how the problems of a TLS-RPT record are told.
var tlsrptTellings = map[string]telling{
	string(tlsrpt.MissingField):      {"tls-rpt.invalid-record", "{part} is missing"},
	string(tlsrpt.MalformedField):    {"tls-rpt.invalid-record", "{text} cannot be read"},
	string(tlsrpt.EmptyField):        {"tls-rpt.invalid-record", "there is nothing between two semicolons"},
	string(tlsrpt.TooManyFields):     {"tls-rpt.invalid-record", "it has more than 100 fields"},
	string(tlsrpt.BadURI):            {"tls-rpt.invalid-record", "{text} is no destination that reports can go to"},
	string(tlsrpt.NoDestination):     {"tls-rpt.invalid-record", "it names no destination by mailto: or https:"},
	string(tlsrpt.UnsupportedScheme): {"tls-rpt.untidy", "{text} is neither mailto: nor https:"},
	string(tlsrpt.DuplicateURI):      {"tls-rpt.untidy", "{text} is listed twice"},
	string(tlsrpt.TooManyURIs):       {"tls-rpt.untidy", "more than 100 destinations are listed"},
	string(tlsrpt.RepeatedField):     {"tls-rpt.untidy", "{part} appears twice"},
	string(tlsrpt.UnknownField):      {"tls-rpt.untidy", "there is a field {part}, which does not exist"},
	string(tlsrpt.FieldCase):         {"tls-rpt.untidy", "the field {text} is not in lower case"},
	string(tlsrpt.SpacedVersion):     {"tls-rpt.untidy", "a space follows the version"},
	string(tlsrpt.TrailingSpace):     {"tls-rpt.untidy", "a space ends the record"},
	string(tlsrpt.MultipleRecords):   {"tls-rpt.multiple-records", ""},
	string(tlsrpt.NearMiss):          {"tls-rpt.near-miss", ""},
	string(tlsrpt.DanglingAlias):     {"tls-rpt.dangling-alias", ""},
}

// tlsrpt tells whether failures of encryption are reported.
func (j *judgement) tlsrpt() {
	f := j.facts.TLSRPT
	wanted := j.request.TLSReportURIs
	there := slices.ContainsFunc(f.Destinations, func(d string) bool { return containsFold(wanted, d) })
	destinations := slices.Clone(f.Destinations)
	if !there {
		destinations = append(destinations, wanted...)
	}
	if len(destinations) == 0 {
		destinations = []string{"mailto:tls-reports@" + j.facts.Domain}
	}
	record := txtRecord(tlsrpt.QueryName(j.facts.Domain), "v=TLSRPTv1; rua="+strings.Join(destinations, ","))
	for _, p := range f.Problems {
		j.tell(tlsrptTellings, p, nil, record)
	}
	switch {
	case f.Status == inconclusive:
		j.say("tls-rpt.inconclusive", words{"reason": f.Reason})
	case f.Status == tlsrpt.StatusNone.String() && len(f.Problems) == 0:
		j.sayRecord("tls-rpt.missing", nil, record)
	case f.Status == tlsrpt.StatusOK.String() && len(wanted) > 0 && !there:
		j.sayRecord("tls-rpt.reports-elsewhere", words{"wanted": strings.Join(wanted, " or ")}, record)
	}
}

// containsFold reports whether a list has a text, in whatever case.
func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, text) })
}

// daneTellings says how the problems of DANE are told.
var daneTellings = map[string]telling{
	string(dane.Malformed):         {"dane.unusable-record", "it is cut off"},
	string(dane.PKIXUsage):         {"dane.unusable-record", "its usage is 0 or 1, which is not for mail"},
	string(dane.UnknownUsage):      {"dane.unusable-record", "its usage does not exist"},
	string(dane.UnknownSelector):   {"dane.unusable-record", "its selector does not exist"},
	string(dane.UnknownMatching):   {"dane.unusable-record", "its matching type does not exist"},
	string(dane.BadData):           {"dane.unusable-record", "its data is not what it says it is"},
	string(dane.TLSAWithoutDNSSEC): {"dane.without-dnssec", ""},
	string(dane.MXWithoutDNSSEC):   {"dane.mx-without-dnssec", ""},
	string(dane.NoUsableRecord):    {"dane.no-usable-record", ""},
	string(dane.SingleRecord):      {"dane.single-record", ""},
	string(dane.MissingTLSA):       {"dane.missing-for-host", ""},
	string(dane.NoAddress):         {}, // told by the MX hosts
	string(dane.TooManyHosts):      {"dane.too-many-hosts", ""},
	string(dane.NoMatch):           {"dane.no-match", "none of them is for this certificate"},
	string(dane.ChainNotServed):    {"dane.no-match", "the server does not present the authority that they name"},
	string(dane.ChainInvalid):      {"dane.no-match", "the certificate does not lead to the authority that they name"},
	string(dane.NameMismatch):      {"dane.no-match", "the certificate is for other names"},
}

// dane tells whether senders can authenticate the mail servers.
func (j *judgement) dane() {
	f := j.facts.DANE
	if f.Status == inconclusive && j.facts.MX.Status != mxInconclusive {
		j.say("dane.inconclusive", words{"reason": f.Reason})
	}
	for _, p := range f.Problems {
		id := daneTellings[p.Kind].id
		if (id == "dane.unusable-record" || id == "dane.no-usable-record") && ignored(f.Problems, p.At) {
			continue // senders do not read these records at all
		}
		j.tell(daneTellings, p, nil, "")
	}
	if f.Status == dane.StatusOK.String() && j.told["dane.no-match"] == 0 {
		j.say("dane.protected", nil)
	}
}

// ignored reports whether senders ignore the TLSA records of a host for want of DNSSEC.
func ignored(problems []dmarcd.Problem, host string) bool {
	return slices.ContainsFunc(problems, func(p dmarcd.Problem) bool {
		return p.At == host && (p.Kind == string(dane.TLSAWithoutDNSSEC) || p.Kind == string(dane.MXWithoutDNSSEC))
	})
}

// weakAlgorithms and weakDigests are those of DS records that RFC 8624 rules out.
var (
	weakAlgorithms = map[int]string{1: "RSAMD5", 3: "DSA", 5: "RSASHA1", 6: "DSA", 7: "RSASHA1", 12: "GOST"}
	weakDigests    = map[int]string{1: "SHA-1 digest", 3: "GOST digest"}
)

// dnssec tells whether the records of the domain can be forged.
func (j *judgement) dnssec() {
	f := j.facts.DNSSEC
	w := words{"zone": f.Zone, "reason": f.Reason}
	j.say("dnssec."+f.Status, w)
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
	// A weak digest beside a strong one is passed over by resolvers.
	if strong {
		weak = slices.DeleteFunc(weak, func(s string) bool { return strings.HasSuffix(s, "digest") })
	}
	if len(weak) > 0 {
		j.say("dnssec.weak-algorithm", w.with("names", listed(weak)))
	}
}
