package dane

// Kind names a sort of problem. The values are stable.
type Kind string

// What may be wrong with one TLSA record. Each of them makes the record unusable.
const (
	// Malformed: the data of the record is too short to be a TLSA record.
	Malformed Kind = "malformed"
	// PKIXUsage: the usage is 0 or 1, which RFC 7672 §3.1.3 rules out for SMTP.
	PKIXUsage Kind = "pkix-usage"
	// UnknownUsage: the usage is above 3.
	UnknownUsage Kind = "unknown-usage"
	// UnknownSelector: the selector is above 1.
	UnknownSelector Kind = "unknown-selector"
	// UnknownMatching: the matching type is above 2.
	UnknownMatching Kind = "unknown-matching"
	// BadData: a digest is not as long as its algorithm makes it, or the data is
	// not the certificate or public key that it is said to be.
	BadData Kind = "bad-data"
)

// What may be wrong with the records of a host or a domain.
const (
	// TLSAWithoutDNSSEC: there are TLSA records, but the host's addresses or the
	// records themselves are not validated, so that senders ignore them.
	TLSAWithoutDNSSEC Kind = "tlsa-without-dnssec"
	// MXWithoutDNSSEC: there are validated TLSA records, but the MX records that
	// lead to the host are not validated, so that an attacker can name another
	// host, and senders need not look (RFC 7672 §2.2.1).
	MXWithoutDNSSEC Kind = "mx-without-dnssec"
	// NoUsableRecord: all TLSA records of the host are unusable. Senders insist
	// on TLS, but authenticate nobody (RFC 7672 §2.2).
	NoUsableRecord Kind = "no-usable-record"
	// SingleRecord: there is one usable record only. The next certificate or key
	// fails until its own record is published and known everywhere, so that must
	// come first (RFC 7671 §8.1).
	SingleRecord Kind = "single-record"
	// MissingTLSA: other hosts of the domain have TLSA records, this one has
	// none. An attacker can lead senders to it.
	MissingTLSA Kind = "missing-tlsa"
	// NoAddress: the host has no address.
	NoAddress Kind = "no-address"
	// TooManyHosts: only the first twenty hosts were looked at.
	TooManyHosts Kind = "too-many-hosts"
)

// What may be wrong with the certificates of a server.
const (
	// NoMatch: no usable record matches a certificate of the server.
	NoMatch Kind = "no-match"
	// ChainNotServed: a record names a trust anchor, and the server presents
	// nothing but its own certificate; it must present the anchor too (RFC 7672
	// §3.1.2).
	ChainNotServed Kind = "chain-not-served"
	// ChainInvalid: a trust anchor matches, but the server's certificate does
	// not lead to it or is out of its dates.
	ChainInvalid Kind = "chain-invalid"
	// NameMismatch: a trust anchor matches, but the server's certificate bears
	// none of the names that it must bear (RFC 7672 §3.2.2).
	NameMismatch Kind = "name-mismatch"
)

// Problem is one thing that is wrong with, or worth saying about, the DANE set-up
// of a domain.
type Problem struct {
	Kind Kind
	// Host is the MX host concerned, "" where it is the domain or where Match
	// was asked without a host.
	Host string
	// Text is what is concerned: the record in its presentation form, the name of
	// the records, the names wanted, or the cause of a failure in words.
	Text string
}
