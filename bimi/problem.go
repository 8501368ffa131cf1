package bimi

// Kind names a sort of problem. The values are stable.
type Kind string

// What may be wrong with a record. The subject of these is the tag.
const (
	// MissingTag: the tag must be there and is not; only l is required.
	MissingTag Kind = "missing-tag"
	// InvalidValue: the value of lps or avp breaks its grammar; receivers ignore
	// the tag.
	InvalidValue Kind = "invalid-value"
	// BadURI: the value of l or a is not a URI with a full domain name.
	BadURI Kind = "bad-uri"
	// NotHTTPS: the value of l or a is a URI of another scheme.
	NotHTTPS Kind = "not-https"
	// SeveralURIs: l or a has a comma; it takes a single URI in which commas are
	// encoded.
	SeveralURIs Kind = "several-uris"
	// UnsupportedFormat: l names a file that is neither SVG nor SVGZ.
	UnsupportedFormat Kind = "unsupported-format"
	// EvidenceWithoutLocation: a has a URI and l has none.
	EvidenceWithoutLocation Kind = "evidence-without-location"
	// NoEvidence: the record is fine without a, but most mailbox providers show
	// an image only with a mark certificate.
	NoEvidence Kind = "no-evidence"
	// UnknownTag: receivers ignore the tag.
	UnknownTag Kind = "unknown-tag"
	// TagCase: the tag would be known if it were in lower case. Receivers must
	// not repair that, so they ignore it.
	TagCase Kind = "tag-case"
	// DuplicateTag: the tag appears again, which voids the record.
	DuplicateTag Kind = "duplicate-tag"
	// MalformedElement: the text between two semicolons is no name=value.
	MalformedElement Kind = "malformed-element"
	// EmptyElement: there is nothing between two semicolons.
	EmptyElement Kind = "empty-element"
	// TooManyTags: only the first hundred tags were read.
	TooManyTags Kind = "too-many-tags"
)

// What may be wrong with a DMARC policy. The subject of these is its domain.
const (
	// PolicyMissing: there is no DMARC policy.
	PolicyMissing Kind = "policy-missing"
	// PolicyNone: the policy is none.
	PolicyNone Kind = "policy-none"
	// SubdomainPolicyNone: the policy for subdomains is none.
	SubdomainPolicyNone Kind = "subdomain-policy-none"
	// PartialQuarantine: the policy is quarantine for a part of the mail only.
	PartialQuarantine Kind = "partial-quarantine"
	// PolicyTesting: the owner asks receivers to apply less than the policy.
	PolicyTesting Kind = "policy-testing"
	// PolicyCollapsed: the record is broken and acts as p=none, or not at all.
	PolicyCollapsed Kind = "policy-collapsed"
)

// What may be wrong with an image. The subject of these is the element, and the
// attribute where there is one.
const (
	// ImageTooLarge: the SVG is larger than 32 KB.
	ImageTooLarge Kind = "image-too-large"
	// BadCompression: the SVGZ cannot be expanded.
	BadCompression Kind = "bad-compression"
	// NotSVG: the image is not well-formed XML with an svg element of the SVG
	// namespace at its root.
	NotSVG Kind = "not-svg"
	// WrongVersion: the version is not 1.2.
	WrongVersion Kind = "wrong-version"
	// WrongProfile: the baseProfile is not tiny-ps.
	WrongProfile Kind = "wrong-profile"
	// MissingTitle: the root has no title with a text.
	MissingTitle Kind = "missing-title"
	// LongTitle: the title is longer than the recommended 64 characters.
	LongTitle Kind = "long-title"
	// PositionedRoot: the root has an x or y attribute.
	PositionedRoot Kind = "positioned-root"
	// Script: there is a script or an event handler.
	Script Kind = "script"
	// Animation: there is an animation.
	Animation Kind = "animation"
	// ExternalReference: something refers to outside of the image.
	ExternalReference Kind = "external-reference"
	// DisallowedElement: the element is not part of the profile.
	DisallowedElement Kind = "disallowed-element"
	// DisallowedAttribute: the attribute is not part of the profile; only style
	// is looked for.
	DisallowedAttribute Kind = "disallowed-attribute"
	// EntityDeclaration: the document type declares entities.
	EntityDeclaration Kind = "entity-declaration"
	// UnknownShape: neither viewBox nor width and height tell the shape.
	UnknownShape Kind = "unknown-shape"
	// NotSquare: the image is not square, which is recommended.
	NotSquare Kind = "not-square"
)

// What may be wrong when a document is fetched. The subject of these is its URI.
const (
	// UntrustedServer: the TLS certificate of the server is not to be trusted.
	UntrustedServer Kind = "untrusted-server"
	// InsecureRedirect: the server redirects to a URI that is not HTTPS.
	InsecureRedirect Kind = "insecure-redirect"
	// TooManyRedirects: the server redirects more than five times.
	TooManyRedirects Kind = "too-many-redirects"
	// UnexpectedStatus: the server answers with another status than 200.
	UnexpectedStatus Kind = "unexpected-status"
	// WrongContentType: the server does not say that the image is an SVG.
	WrongContentType Kind = "wrong-content-type"
	// DocumentTooLarge: the document is larger than 1 MiB and was not read.
	DocumentTooLarge Kind = "document-too-large"
)

// What may be wrong with an evidence document. The subject of these is the common
// name of the certificate, "" where none is concerned.
const (
	// NoCertificate: there is no mark certificate in it.
	NoCertificate Kind = "no-certificate"
	// BadCertificate: a certificate in it cannot be read.
	BadCertificate Kind = "bad-certificate"
	// UnexpectedBlock: there is a PEM block in it that is no certificate. A
	// private key would be a disaster.
	UnexpectedBlock Kind = "unexpected-block"
	// TooManyCertificates: only the first ten certificates were read.
	TooManyCertificates Kind = "too-many-certificates"
	// SeveralMarks: there is more than one certificate that is no authority's.
	SeveralMarks Kind = "several-marks"
	// OutOfOrder: the mark certificate is not first, or a certificate is not
	// followed by that of its issuer.
	OutOfOrder Kind = "out-of-order"
	// UntrustedChain: the certificates do not lead to a root that is trusted for
	// marks.
	UntrustedChain Kind = "untrusted-chain"
	// NotYetValid: the certificate is not valid yet.
	NotYetValid Kind = "not-yet-valid"
	// Expired: the certificate is not valid any more.
	Expired Kind = "expired"
	// ExpiresSoon: the certificate expires within 14 days.
	ExpiresSoon Kind = "expires-soon"
	// WrongKeyUsage: the certificate, or that of its issuer, is not meant for
	// marks.
	WrongKeyUsage Kind = "wrong-key-usage"
	// WrongDomain: the certificate is for other domains.
	WrongDomain Kind = "wrong-domain"
	// MissingLogotype: the certificate has no logotype extension with an
	// embedded SVG.
	MissingLogotype Kind = "missing-logotype"
	// LogotypeHash: the image in the certificate is not the one that its hash is
	// of.
	LogotypeHash Kind = "logotype-hash"
	// ImageMismatch: the image in the certificate is not the one of the record.
	ImageMismatch Kind = "image-mismatch"
	// UnknownMark: the certificate does not say what sort of mark it is for, or
	// names an unknown one.
	UnknownMark Kind = "unknown-mark"
)

// Problem is one thing that is wrong with, or worth saying about, a record or
// something that it leads to.
type Problem struct {
	Kind Kind
	// Subject names the part concerned: a tag, a domain, an element, a URI or a
	// certificate, as the kind says.
	Subject string
	// Text is what is concerned: the value, the element, the status, the hash, or
	// the cause in words. It is cut after 500 bytes.
	Text string
}
