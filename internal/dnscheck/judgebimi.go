package dnscheck

import "github.com/dmarcd/dmarcd/bimi"

// bimiTellings says how the problems of BIMI are told.
var bimiTellings = map[string]telling{
	string(bimi.MissingTag):              {"bimi.invalid-record", "the tag {part} is missing"},
	string(bimi.BadURI):                  {"bimi.invalid-record", "{part}={text} is not an address with a full domain name"},
	string(bimi.NotHTTPS):                {"bimi.invalid-record", "{part}={text} is not an https address"},
	string(bimi.SeveralURIs):             {"bimi.invalid-record", "{part} takes one address only"},
	string(bimi.UnsupportedFormat):       {"bimi.invalid-record", "{text} is neither SVG nor SVGZ"},
	string(bimi.EvidenceWithoutLocation): {"bimi.invalid-record", "it names a certificate (a) and no logo (l)"},
	string(bimi.DuplicateTag):            {"bimi.invalid-record", "the tag {part} appears twice"},
	string(bimi.InvalidValue):            {"bimi.ignored-part", "the tag {part} cannot have the value {text}"},
	string(bimi.UnknownTag):              {"bimi.ignored-part", "there is a tag {part}, which does not exist"},
	string(bimi.TagCase):                 {"bimi.ignored-part", "the tag {part} is not in lower case"},
	string(bimi.MalformedElement):        {"bimi.ignored-part", "{text} is not of the form name=value"},
	string(bimi.EmptyElement):            {"bimi.ignored-part", "there is nothing between two semicolons"},
	string(bimi.TooManyTags):             {"bimi.ignored-part", "there are more than 100 tags"},
	string(bimi.NoEvidence):              {"bimi.no-evidence", ""},

	string(bimi.PolicyMissing):       {"bimi.policy", "it has no DMARC policy"},
	string(bimi.PolicyNone):          {"bimi.policy", "the DMARC policy is none"},
	string(bimi.SubdomainPolicyNone): {"bimi.policy", "the DMARC policy for subdomains is none"},
	string(bimi.PartialQuarantine):   {"bimi.policy", "the DMARC policy holds for a part of the mail only"},
	string(bimi.PolicyTesting):       {"bimi.policy", "the DMARC policy is in test mode"},
	string(bimi.PolicyCollapsed):     {"bimi.policy", "its DMARC record is broken"},

	string(bimi.ImageTooLarge):       {"bimi.image", "it is larger than 32 KB"},
	string(bimi.BadCompression):      {"bimi.image", "the SVGZ file is damaged"},
	string(bimi.NotSVG):              {"bimi.image", "it is not an SVG"},
	string(bimi.WrongVersion):        {"bimi.image", "its version is not 1.2"},
	string(bimi.WrongProfile):        {"bimi.image", "its baseProfile is not tiny-ps"},
	string(bimi.MissingTitle):        {"bimi.image", "it has no title"},
	string(bimi.PositionedRoot):      {"bimi.image", "its root has an x or y attribute"},
	string(bimi.Script):              {"bimi.image", "it holds a script"},
	string(bimi.Animation):           {"bimi.image", "it holds an animation"},
	string(bimi.ExternalReference):   {"bimi.image", "it refers to something outside: {text}"},
	string(bimi.DisallowedElement):   {"bimi.image", "it holds the element {part}, which is not allowed"},
	string(bimi.DisallowedAttribute): {"bimi.image", "it holds the attribute {part}, which is not allowed"},
	string(bimi.EntityDeclaration):   {"bimi.image", "it declares entities"},
	string(bimi.LongTitle):           {"bimi.image-shape", "its title is longer than 64 characters"},
	string(bimi.UnknownShape):        {"bimi.image-shape", "its shape is not told"},
	string(bimi.NotSquare):           {"bimi.image-shape", "it is not square"},

	string(bimi.UntrustedServer):  {"bimi.fetch", "the certificate of the web server is not valid: {text}"},
	string(bimi.InsecureRedirect): {"bimi.fetch", "the web server leads to an address that is not https"},
	string(bimi.TooManyRedirects): {"bimi.fetch", "the web server leads on more than five times"},
	string(bimi.UnexpectedStatus): {"bimi.fetch", "the web server answers {text}"},
	string(bimi.WrongContentType): {"bimi.fetch", "the web server does not say that it is an SVG"},
	string(bimi.DocumentTooLarge): {"bimi.fetch", "it is larger than 1 MiB"},

	string(bimi.NoCertificate):       {"bimi.evidence", "there is no mark certificate in the file"},
	string(bimi.BadCertificate):      {"bimi.evidence", "a certificate cannot be read"},
	string(bimi.UnexpectedBlock):     {"bimi.evidence", "the file holds something that is no certificate"},
	string(bimi.TooManyCertificates): {"bimi.evidence", "the file holds more than ten certificates"},
	string(bimi.SeveralMarks):        {"bimi.evidence", "the file holds several mark certificates"},
	string(bimi.OutOfOrder):          {"bimi.evidence", "the certificates are not in order"},
	string(bimi.UntrustedChain):      {"bimi.evidence", "no known authority stands behind it"},
	string(bimi.NotYetValid):         {"bimi.evidence", "it is not valid yet"},
	string(bimi.Expired):             {"bimi.evidence", "it has expired"},
	string(bimi.ExpiresSoon):         {"bimi.evidence", "it expires within 14 days"},
	string(bimi.WrongKeyUsage):       {"bimi.evidence", "it is not meant for marks"},
	string(bimi.WrongDomain):         {"bimi.evidence", "it is for other domains"},
	string(bimi.MissingLogotype):     {"bimi.evidence", "it holds no logo"},
	string(bimi.LogotypeHash):        {"bimi.evidence", "its logo is not the one that it was signed for"},
	string(bimi.ImageMismatch):       {"bimi.evidence", "its logo is not the one that the record names"},
	string(bimi.UnknownMark):         {"bimi.evidence", "it does not say what sort of mark it is for"},
}

// bimi tells whether the logo can be shown. A domain without a record has nothing
// to mend.
func (j *judgement) bimi() {
	f := j.facts.BIMI
	switch f.Status {
	case bimi.StatusMultiple.String():
		j.say("bimi.multiple-records", nil)
		return
	case bimi.StatusOK.String(), bimi.StatusInvalid.String(), inconclusive:
	default:
		return
	}
	if f.Reason != "" {
		j.say("bimi.inconclusive", words{"reason": f.Reason})
	}
	for _, p := range f.Problems {
		j.tell(bimiTellings, p, nil, "")
	}
}
