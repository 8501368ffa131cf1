package dane

// Kind is a type of problem. The values are stable.
type Kind string

// Problems of one TLSA record. Each makes the record unusable.
const (
	// Malformed: the data of the record is too short to be a TLSA record.
	Malformed Kind = "malformed"
	// PKIXUsage: the usage is 0 or 1, which RFC 7672 §3.1.3 excludes for SMTP.
	PKIXUsage Kind = "pkix-usage"
	// UnknownUsage: the usage is above 3.
	UnknownUsage Kind = "unknown-usage"
	// UnknownSelector: the selector is above 1.
	UnknownSelector Kind = "unknown-selector"
	// UnknownMatching: the matching type is above 2.
	UnknownMatching Kind = "unknown-matching"
	// BadData: a digest has the wrong length, or the data is not a certificate or public
	// key.
	BadData Kind = "bad-data"
)

// Problems of the records of a host or a domain.
const (
	// TLSAWithoutDNSSEC: there are TLSA records, but the host's addresses or the records
	// themselves are not validated, so senders ignore them.
	TLSAWithoutDNSSEC Kind = "tlsa-without-dnssec"
	// MXWithoutDNSSEC: there are validated TLSA records, but the MX records are not
	// validated, so an attacker can substitute another host, and senders may skip DANE
	// (RFC 7672 §2.2.1).
	MXWithoutDNSSEC Kind = "mx-without-dnssec"
	// NoUsableRecord: all TLSA records of the host are unusable. Senders require TLS, but
	// cannot authenticate the server (RFC 7672 §2.2).
	NoUsableRecord Kind = "no-usable-record"
	// SingleRecord: there is only one usable record. The next certificate or key fails
	// until its own record has propagated, so publish that first (RFC 7671 §8.1).
	SingleRecord Kind = "single-record"
	// MissingTLSA: other hosts of the domain have TLSA records, this one has none. An
	// attacker can direct senders to it.
	MissingTLSA Kind = "missing-tlsa"
	// NoAddress: the host has no address.
	NoAddress Kind = "no-address"
	// TooManyHosts: only the first twenty hosts were checked.
	TooManyHosts Kind = "too-many-hosts"
)

// Problems of the certificates of a server.
const (
	// NoMatch: no usable record matches a certificate of the server.
	NoMatch Kind = "no-match"
	// ChainNotServed: a record refers to a trust anchor, but the server sends only its own
	// certificate (RFC 7672 §3.1.2).
	ChainNotServed Kind = "chain-not-served"
	// ChainInvalid: a trust anchor matches, but the server's certificate does not chain to
	// it or has expired.
	ChainInvalid Kind = "chain-invalid"
	// NameMismatch: a trust anchor matches, but the server's certificate has none of the
	// required names (RFC 7672 §3.2.2).
	NameMismatch Kind = "name-mismatch"
)

// Problem is a problem of the DANE configuration of a domain.
type Problem struct {
	Kind Kind
	// Host is the affected MX host, "" for the domain or if Match was called without a
	// host.
	Host string
	// Text is the affected part: the record in presentation format, the name of the
	// records, the required names, or the cause of a failure.
	Text string
}
