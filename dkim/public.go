package dkim

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"strings"
)

// Key sizes.
const (
	minBits      = 1024 // RFC 8301 §3.2: minimum
	goodBits     = 2048 // RFC 8301 §3.2: recommended for signers
	commonBits   = 4096 // RFC 8301 §3.2: verifiers must support it
	extremeBits  = 8192 // maximum of common verifiers
	exponentBits = 31   // exponent that all common libraries support
	hugeExponent = 62   // exponent that some support, and that fits an int
	ed25519Bits  = 256
)

// oidRSA is rsaEncryption of RFC 8017 §A.1.
var oidRSA = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}

// subjectPublicKeyInfo is the ASN.1 type of RFC 5280 §4.1.
type subjectPublicKeyInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

// rsaPublicKey is the ASN.1 type of RFC 8017 §A.1.1.
type rsaPublicKey struct{ Modulus, Exponent *big.Int }

// publicKey decodes p. White space is allowed anywhere, and the padding may be missing
// (RFC 6376 §2.10).
func (p *parser) publicKey() {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(whitespace, r) {
			return -1
		}
		return r
	}, p.data)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		p.note(true, Problem{Kind: UndecodableKey, Tag: tagP, Text: p.data})
		return
	}
	switch p.key.Algorithm {
	case RSA:
		p.rsa(data)
	case Ed25519:
		p.ed25519(data)
	}
}

// ed25519 parses the 32 bytes of RFC 8463 §4.
func (p *parser) ed25519(data []byte) {
	if len(data) != ed25519.PublicKeySize {
		p.note(true, Problem{
			Kind: WrongKeyLength, Tag: tagP, Text: p.data, Count: len(data), Limit: ed25519.PublicKeySize,
		})
		return
	}
	p.key.PublicKey, p.key.Bits = ed25519.PublicKey(data), ed25519Bits
}

// rsa parses a SubjectPublicKeyInfo or an RSAPublicKey.
func (p *parser) rsa(der []byte) {
	var info subjectPublicKeyInfo
	wrapped := unmarshal(der, &info)
	if wrapped {
		if id := info.Algorithm.Algorithm; !id.Equal(oidRSA) {
			p.note(true, Problem{Kind: WrongKeyType, Tag: tagP, Text: id.String()})
			return
		}
		der = info.Key.RightAlign()
	}
	var key rsaPublicKey
	if !unmarshal(der, &key) || key.Modulus.Sign() <= 0 {
		p.note(true, Problem{Kind: MalformedKey, Tag: tagP, Text: p.data})
		return
	}
	p.note(!wrapped, Problem{Kind: BareKey, Tag: tagP})
	p.key.Bits = key.Modulus.BitLen()
	p.size(p.key.Bits)
	p.exponent(key.Exponent)
	if key.Exponent.BitLen() <= hugeExponent {
		p.key.PublicKey = &rsa.PublicKey{N: key.Modulus, E: int(key.Exponent.Int64())}
	}
}

// size checks the length of an RSA modulus.
func (p *parser) size(bits int) {
	problem := Problem{Tag: tagP, Count: bits}
	switch {
	case bits < minBits:
		problem.Kind, problem.Limit = ShortKey, minBits
	case bits < goodBits:
		problem.Kind, problem.Limit = WeakKey, goodBits
	case bits > extremeBits:
		problem.Kind, problem.Limit = LongKey, extremeBits
	case bits > commonBits:
		problem.Kind, problem.Limit = LongKey, commonBits
	default:
		return
	}
	p.note(true, problem)
}

// exponent checks the public exponent of an RSA key. RFC 8017 §3.1 requires an odd number
// of at least 3.
func (p *parser) exponent(e *big.Int) {
	bits := e.BitLen()
	if e.Sign() <= 0 || e.Bit(0) == 0 || bits == 1 || bits > hugeExponent {
		text := ""
		if bits <= hugeExponent {
			text = e.String()
		}
		p.note(true, Problem{Kind: BadExponent, Tag: tagP, Text: text})
		return
	}
	p.note(bits > exponentBits, Problem{Kind: LargeExponent, Tag: tagP, Count: bits, Limit: exponentBits})
}

// unmarshal parses DER that consists of exactly one value.
func unmarshal(der []byte, value any) bool {
	rest, err := asn1.Unmarshal(der, value)
	return err == nil && len(rest) == 0
}
