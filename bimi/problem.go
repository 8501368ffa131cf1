package bimi

// Kind is the stable type of a problem.
type Kind string

// Problems of a record. The subject is the tag.
const (
	// MissingTag: a required tag is missing; only l is required.
	MissingTag Kind = "missing-tag"
	// InvalidValue: the value of lps or avp is invalid; receivers ignore the tag.
	InvalidValue Kind = "invalid-value"
	// BadURI: the value of l or a is not a URI with a full domain name.
	BadURI Kind = "bad-uri"
	// NotHTTPS: the value of l or a is a URI with another scheme.
	NotHTTPS Kind = "not-https"
	// SeveralURIs: l or a contains a comma; it takes a single URI, in which commas must
	// be encoded.
	SeveralURIs Kind = "several-uris"
	// UnsupportedFormat: l refers to a file that is neither SVG nor SVGZ.
	UnsupportedFormat Kind = "unsupported-format"
	// EvidenceWithoutLocation: a has a URI but l has none.
	EvidenceWithoutLocation Kind = "evidence-without-location"
	// NoEvidence: a is optional, but most mailbox providers show an image only with a
	// mark certificate.
	NoEvidence Kind = "no-evidence"
	// UnknownTag: receivers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// TagCase: the tag would be known in lower case. Receivers must not repair it, so
	// they ignore it.
	TagCase Kind = "tag-case"
	// DuplicateTag: the tag is repeated, which invalidates the record.
	DuplicateTag Kind = "duplicate-tag"
	// MalformedElement: the text between two semicolons is not name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: there is nothing between two semicolons.
	EmptyElement Kind = "empty-element"
	// TooManyTags: only the first 100 tags were read.
	TooManyTags Kind = "too-many-tags"
)

// Problems of a DMARC policy. The subject is its domain.
const (
	// PolicyMissing: there is no DMARC policy.
	PolicyMissing Kind = "policy-missing"
	// PolicyNone: the policy is none.
	PolicyNone Kind = "policy-none"
	// SubdomainPolicyNone: the policy for subdomains is none.
	SubdomainPolicyNone Kind = "subdomain-policy-none"
	// PartialQuarantine: the policy is quarantine for only a part of the mail.
	PartialQuarantine Kind = "partial-quarantine"
	// PolicyTesting: the record asks receivers to apply less than the policy.
	PolicyTesting Kind = "policy-testing"
	// PolicyCollapsed: the record is broken and has the effect of p=none, or none at all.
	PolicyCollapsed Kind = "policy-collapsed"
)

// Problems of an image. The subject is the element and, if any, the attribute.
const (
	// ImageTooLarge: the SVG is larger than 32 KB.
	ImageTooLarge Kind = "image-too-large"
	// BadCompression: the SVGZ cannot be decompressed.
	BadCompression Kind = "bad-compression"
	// NotSVG: the image is not well-formed XML with an svg root element in the SVG
	// namespace.
	NotSVG Kind = "not-svg"
	// WrongVersion: the version is not 1.2.
	WrongVersion Kind = "wrong-version"
	// WrongProfile: the baseProfile is not tiny-ps.
	WrongProfile Kind = "wrong-profile"
	// MissingTitle: the root has no title, or an empty one.
	MissingTitle Kind = "missing-title"
	// LongTitle: the title is longer than the recommended 64 characters.
	LongTitle Kind = "long-title"
	// PositionedRoot: the root has an x or y attribute.
	PositionedRoot Kind = "positioned-root"
	// Script: there is a script or an event handler.
	Script Kind = "script"
	// Animation: there is an animation.
	Animation Kind = "animation"
	// ExternalReference: there is a reference to something outside the image.
	ExternalReference Kind = "external-reference"
	// DisallowedElement: the element is not part of the profile.
	DisallowedElement Kind = "disallowed-element"
	// DisallowedAttribute: the attribute is not part of the profile; only style is
	// checked.
	DisallowedAttribute Kind = "disallowed-attribute"
	// EntityDeclaration: the document type declares entities.
	EntityDeclaration Kind = "entity-declaration"
	// UnknownShape: neither viewBox nor width and height specify the shape.
	UnknownShape Kind = "unknown-shape"
	// NotSquare: the image is not square, which is recommended.
	NotSquare Kind = "not-square"
)

// Problems of fetching a document. The subject is its URI.
const (
	// UntrustedServer: the TLS certificate of the server is not trusted.
	UntrustedServer Kind = "untrusted-server"
	// InsecureRedirect: the server redirects to a URI that is not HTTPS.
	InsecureRedirect Kind = "insecure-redirect"
	// TooManyRedirects: the server redirects more than five times.
	TooManyRedirects Kind = "too-many-redirects"
	// UnexpectedStatus: the HTTP status is not 200.
	UnexpectedStatus Kind = "unexpected-status"
	// WrongContentType: the media type of the image is not that of SVG.
	WrongContentType Kind = "wrong-content-type"
	// DocumentTooLarge: the document is larger than 1 MiB and was not read.
	DocumentTooLarge Kind = "document-too-large"
)

// Problems of an evidence document. The subject is the common name of the certificate, ""
// if none is affected.
const (
	// NoCertificate: there is no mark certificate.
	NoCertificate Kind = "no-certificate"
	// BadCertificate: a certificate cannot be parsed, or has an RSA key of more than 8192
	// bits.
	BadCertificate Kind = "bad-certificate"
	// UnexpectedBlock: there is a PEM block other than a certificate. It might be a
	// private key.
	UnexpectedBlock Kind = "unexpected-block"
	// TooManyCertificates: only the first ten certificates were read.
	TooManyCertificates Kind = "too-many-certificates"
	// SeveralMarks: there is more than one certificate that is not a CA certificate.
	SeveralMarks Kind = "several-marks"
	// OutOfOrder: the mark certificate is not first, or a certificate is not
	// followed by that of its issuer.
	OutOfOrder Kind = "out-of-order"
	// UntrustedChain: there is no path to a root that is trusted for marks.
	UntrustedChain Kind = "untrusted-chain"
	// NotYetValid: the certificate is not valid yet.
	NotYetValid Kind = "not-yet-valid"
	// Expired: the certificate has expired.
	Expired Kind = "expired"
	// ExpiresSoon: the certificate expires within 14 days.
	ExpiresSoon Kind = "expires-soon"
	// WrongKeyUsage: the certificate or that of its issuer lacks the key usage for marks.
	WrongKeyUsage Kind = "wrong-key-usage"
	// WrongDomain: the certificate is for other domains.
	WrongDomain Kind = "wrong-domain"
	// MissingLogotype: the certificate has no logotype extension with an
	// embedded SVG.
	MissingLogotype Kind = "missing-logotype"
	// LogotypeHash: the image in the certificate does not match its hash.
	LogotypeHash Kind = "logotype-hash"
	// ImageMismatch: the image in the certificate differs from that of the record.
	ImageMismatch Kind = "image-mismatch"
	// UnknownMark: the type of mark is missing or unknown.
	UnknownMark Kind = "unknown-mark"
)

// Problem is one problem of a record or of something it refers to.
type Problem struct {
	Kind Kind
	// Subject is the affected tag, domain, element, URI or certificate, depending on the
	// kind.
	Subject string
	// Text is the affected value, element, status or hash, or the cause. It is truncated
	// to 500 bytes.
	Text string
}
