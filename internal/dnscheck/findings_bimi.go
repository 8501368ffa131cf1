package dnscheck

import (
	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/bimi"
)

// bimiFindings maps BIMI problems to findings.
var bimiFindings = map[string]mapping{
	string(bimi.MissingTag):              {"bimi.invalid_record", "the tag {part} is missing"},
	string(bimi.BadURI):                  {"bimi.invalid_record", "{part}={text} is not a URL with a fully qualified domain name"},
	string(bimi.NotHTTPS):                {"bimi.invalid_record", "{part}={text} is not an https URL"},
	string(bimi.SeveralURIs):             {"bimi.invalid_record", "{part} accepts only one URL"},
	string(bimi.UnsupportedFormat):       {"bimi.invalid_record", "{text} is neither SVG nor SVGZ"},
	string(bimi.EvidenceWithoutLocation): {"bimi.invalid_record", "it has a certificate (a) but no logo (l)"},
	string(bimi.DuplicateTag):            {"bimi.invalid_record", "the tag {part} occurs twice"},
	string(bimi.InvalidValue):            {"bimi.ignored_part", "the tag {part} has the invalid value {text}"},
	string(bimi.UnknownTag):              {"bimi.ignored_part", "the tag {part} is unknown"},
	string(bimi.TagCase):                 {"bimi.ignored_part", "the tag {part} is not in lower case"},
	string(bimi.MalformedElement):        {"bimi.ignored_part", "{text} is not of the form name=value"},
	string(bimi.EmptyElement):            {"bimi.ignored_part", "there are two consecutive semicolons"},
	string(bimi.TooManyTags):             {"bimi.ignored_part", "there are more than 100 tags"},
	string(bimi.NoEvidence):              {"bimi.no_evidence", ""},

	string(bimi.PolicyMissing):       {"bimi.policy", "{part} has no DMARC policy"},
	string(bimi.PolicyNone):          {"bimi.policy", "the DMARC policy of {part} is none"},
	string(bimi.SubdomainPolicyNone): {"bimi.policy", "the DMARC policy of {part} for subdomains is none"},
	string(bimi.PartialQuarantine):   {"bimi.policy", "the DMARC policy of {part} applies to only part of the mail"},
	string(bimi.PolicyTesting):       {"bimi.policy", "the DMARC policy of {part} is in test mode"},
	string(bimi.PolicyCollapsed):     {"bimi.policy", "the DMARC record of {part} is invalid"},

	string(bimi.ImageTooLarge):       {"bimi.image", "it is larger than 32 KB"},
	string(bimi.BadCompression):      {"bimi.image", "the SVGZ file is damaged"},
	string(bimi.NotSVG):              {"bimi.image", "it is not an SVG"},
	string(bimi.WrongVersion):        {"bimi.image", "its version is not 1.2"},
	string(bimi.WrongProfile):        {"bimi.image", "its baseProfile is not tiny-ps"},
	string(bimi.MissingTitle):        {"bimi.image", "it has no title"},
	string(bimi.PositionedRoot):      {"bimi.image", "its root has an x or y attribute"},
	string(bimi.Script):              {"bimi.image", "it contains a script"},
	string(bimi.Animation):           {"bimi.image", "it contains an animation"},
	string(bimi.ExternalReference):   {"bimi.image", "it has an external reference: {text}"},
	string(bimi.DisallowedElement):   {"bimi.image", "it contains the element {part}, which is not allowed"},
	string(bimi.DisallowedAttribute): {"bimi.image", "it contains the attribute {part}, which is not allowed"},
	string(bimi.EntityDeclaration):   {"bimi.image", "it declares entities"},
	string(bimi.LongTitle):           {"bimi.image_shape", "its title is longer than 64 characters"},
	string(bimi.UnknownShape):        {"bimi.image_shape", "it does not declare its dimensions"},
	string(bimi.NotSquare):           {"bimi.image_shape", "it is not square"},

	string(bimi.UntrustedServer):  {"bimi.fetch", "the certificate of the web server is invalid: {text}"},
	string(bimi.InsecureRedirect): {"bimi.fetch", "the web server redirects to a URL that is not https"},
	string(bimi.TooManyRedirects): {"bimi.fetch", "the web server redirects more than five times"},
	string(bimi.UnexpectedStatus): {"bimi.fetch", "the web server returns {text}"},
	string(bimi.WrongContentType): {"bimi.fetch", "its media type is not that of an SVG image"},
	string(bimi.DocumentTooLarge): {"bimi.fetch", "it is larger than 1 MiB"},

	string(bimi.NoCertificate):       {"bimi.evidence", "the file contains no mark certificate"},
	string(bimi.BadCertificate):      {"bimi.evidence", "a certificate is invalid: {text}"},
	string(bimi.UnexpectedBlock):     {"bimi.evidence", "the file contains something other than certificates"},
	string(bimi.TooManyCertificates): {"bimi.evidence", "the file contains more than ten certificates"},
	string(bimi.SeveralMarks):        {"bimi.evidence", "the file contains several mark certificates"},
	string(bimi.OutOfOrder):          {"bimi.evidence", "the certificates are in the wrong order"},
	string(bimi.UntrustedChain):      {"bimi.evidence", "it was not issued by a known authority"},
	string(bimi.NotYetValid):         {"bimi.evidence", "it is not valid yet"},
	string(bimi.Expired):             {"bimi.evidence", "it has expired"},
	string(bimi.ExpiresSoon):         {"bimi.evidence", "it expires within 14 days"},
	string(bimi.WrongKeyUsage):       {"bimi.evidence", "its key usage is not for marks"},
	string(bimi.WrongDomain):         {"bimi.evidence", "it was issued for other domains"},
	string(bimi.MissingLogotype):     {"bimi.evidence", "it contains no logo"},
	string(bimi.LogotypeHash):        {"bimi.evidence", "its logo does not match its signed hash"},
	string(bimi.ImageMismatch):       {"bimi.evidence", "its logo differs from the logo in the record"},
	string(bimi.UnknownMark):         {"bimi.evidence", "it does not state its type of mark"},
}

// bimi evaluates the BIMI record. A domain without one has nothing to fix.
func (e *evaluation) bimi() {
	f := e.facts.BIMI
	switch f.Status {
	case bimi.StatusMultiple.String():
		e.add("bimi.multiple_records", nil)
		return
	case bimi.StatusOK.String(), bimi.StatusInvalid.String(), inconclusive:
	default:
		return
	}
	if f.Reason != "" {
		e.add("bimi.inconclusive", words{"reason": f.Reason})
	}
	for _, p := range f.Problems {
		e.addProblem(bimiFindings, p, nil, dmarcd.DNSRecord{})
	}
}
