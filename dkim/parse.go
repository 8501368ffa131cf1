package dkim

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
)

// The names of the tags (RFC 6376 §3.6.1), and the additional one of RFC 4871.
const (
	tagV = "v"
	tagH = "h"
	tagK = "k"
	tagN = "n"
	tagP = "p"
	tagS = "s"
	tagT = "t"
	tagG = "g"
)

const (
	version = "DKIM1"
	// whitespace is the set of FWS characters.
	whitespace  = " \t\r\n"
	flagTesting = "y"
	flagStrict  = "s"
	sha1        = "sha1"
	sha256      = "sha256"
)

// ParseKey parses the joined text of one TXT record. It returns false if the text is not a
// key record: it starts with a v tag other than DKIM1 (RFC 6376 §3.6.1), or has neither a
// leading v tag nor a p tag. Everything else is a key, however broken, with its problems.
func ParseKey(txt string) (Key, bool) {
	if !isKey(txt) {
		return Key{}, false
	}
	p := parser{key: Key{Text: txt, Algorithm: RSA}}
	p.elements(txt)
	p.finish()
	return p.key, true
}

// isKey reports whether a text is a key record. The version is only recommended, so a text
// without one is a key if it has the required tag p.
func isKey(txt string) bool {
	first := true
	for element := range strings.SplitSeq(txt, ";") {
		name, value, ok := cutElement(element)
		if first && ok && name == tagV {
			return value == version
		}
		if ok && name == tagP {
			return true
		}
		first = false
	}
	return false
}

// cutElement parses name=value with optional white space (RFC 6376 §3.2).
func cutElement(element string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(element, "=")
	return strings.Trim(name, whitespace), strings.Trim(value, whitespace), ok
}

// parser builds a key from the elements of a record.
type parser struct {
	key Key
	// data is the value of p; hasData is true if there is a p tag.
	data    string
	hasData bool
	// broken is set if verifiers must ignore the record because of its syntax, unusable if
	// signatures cannot be verified for another reason.
	broken, unusable bool
}

// note adds a problem if the condition is true.
func (p *parser) note(condition bool, problem Problem) {
	if !condition {
		return
	}
	p.broken = p.broken || problem.Kind.syntactic()
	p.unusable = p.unusable || problem.Kind.Fatal()
	if len(p.key.Problems) < maxListed {
		p.key.Problems = append(p.key.Problems, problem)
	}
}

// elements parses the elements between semicolons. The last one may be empty.
func (p *parser) elements(text string) {
	for more := text != ""; more; {
		var element string
		element, text, more = strings.Cut(text, ";")
		trimmed := strings.Trim(element, whitespace)
		switch {
		case trimmed == "" && more:
			p.note(true, Problem{Kind: EmptyElement})
		case trimmed == "":
			p.note(element != "", Problem{Kind: TrailingSpace})
		case len(p.key.Tags) == maxListed:
			p.note(true, Problem{Kind: TooManyTags, Text: trimmed})
			return
		default:
			p.element(trimmed)
		}
	}
}

// element parses one name=value.
func (p *parser) element(element string) {
	name, value, ok := cutElement(element)
	if !ok || !isTagName(name) || !isTagValue(value) {
		p.note(true, Problem{Kind: MalformedElement, Text: element})
		return
	}
	repeated := slices.ContainsFunc(p.key.Tags, func(t Tag) bool { return t.Name == name })
	first := len(p.key.Tags) == 0
	p.key.Tags = append(p.key.Tags, Tag{name, value})
	switch {
	case repeated:
		p.note(true, Problem{Kind: DuplicateTag, Tag: name, Text: value})
	case name == tagV:
		// At the start it is DKIM1, as isKey has checked. After a malformed element the
		// record is broken anyway.
		p.note(!first, Problem{Kind: VersionNotFirst, Tag: name, Text: value})
	default:
		p.value(name, value)
	}
}

// value handles the first occurrence of a tag.
func (p *parser) value(tag, value string) {
	switch tag {
	case tagK:
		p.algorithm(value)
	case tagP:
		p.data, p.hasData = value, true
	case tagH:
		p.key.Hashes = p.list(tag, value)
		p.hashes(value)
	case tagS:
		p.key.Services = p.list(tag, value)
		p.services(value)
	case tagT:
		p.flags(p.list(tag, value))
	case tagN:
		p.key.Notes = value
	case tagG:
		p.note(true, Problem{Kind: HistoricTag, Tag: tag, Text: value})
	default:
		lower := strings.ToLower(tag)
		known := slices.Contains([]string{tagV, tagH, tagK, tagN, tagP, tagS, tagT}, lower)
		p.note(known, Problem{Kind: TagCase, Tag: lower, Text: tag})
		p.note(!known, Problem{Kind: UnknownTag, Tag: tag, Text: value})
	}
}

// algorithm handles k.
func (p *parser) algorithm(value string) {
	if !isWord(value) {
		p.note(true, Problem{Kind: InvalidValue, Tag: tagK, Text: value})
		return
	}
	p.key.Algorithm = value
	p.note(value != RSA && value != Ed25519, Problem{Kind: UnknownAlgorithm, Tag: tagK, Text: value})
}

// list splits the values of h, s and t at colons. A malformed list is ignored.
func (p *parser) list(tag, value string) []string {
	var words []string
	for word := range strings.SplitSeq(value, ":") {
		word = strings.Trim(word, whitespace)
		if len(words) == maxListed || !isWord(word) && (tag != tagS || word != "*") {
			p.note(true, Problem{Kind: InvalidValue, Tag: tag, Text: value})
			return nil
		}
		words = append(words, word)
	}
	return words
}

// hashes checks the values of h.
func (p *parser) hashes(value string) {
	if len(p.key.Hashes) == 0 {
		return
	}
	p.unknown(UnknownHash, tagH, p.key.Hashes, sha1, sha256)
	old, current := slices.Contains(p.key.Hashes, sha1), slices.Contains(p.key.Hashes, sha256)
	p.note(old && current, Problem{Kind: SHA1Allowed, Tag: tagH, Text: value})
	p.note(old && !current, Problem{Kind: SHA1Only, Tag: tagH, Text: value})
	p.note(!old && !current, Problem{Kind: NoKnownHash, Tag: tagH, Text: value})
}

// services checks the values of s; tlsrpt is from RFC 8460 §3.
func (p *parser) services(value string) {
	p.unknown(UnknownService, tagS, p.key.Services, "*", "email", "tlsrpt")
	p.note(!p.key.ForEmail(), Problem{Kind: NotForEmail, Tag: tagS, Text: value})
}

// flags handles t.
func (p *parser) flags(flags []string) {
	p.unknown(UnknownFlag, tagT, flags, flagTesting, flagStrict)
	p.key.Testing = slices.Contains(flags, flagTesting)
	p.key.Strict = slices.Contains(flags, flagStrict)
	p.note(p.key.Testing, Problem{Kind: TestMode, Tag: tagT, Text: flagTesting})
}

// unknown adds a problem for each unknown word.
func (p *parser) unknown(kind Kind, tag string, words []string, known ...string) {
	for _, word := range words {
		p.note(!slices.Contains(known, word), Problem{Kind: kind, Tag: tag, Text: word})
	}
}

// finish decodes the key once the algorithm is known, and checks the whole record.
func (p *parser) finish() {
	p.note(!p.hasData, Problem{Kind: MissingTag, Tag: tagP})
	if p.data != "" {
		p.publicKey()
	}
	switch {
	case p.broken:
		p.key.State = Invalid
	case p.data == "":
		// RFC 6376 §6.1.2 checks revocation (step 7) before the algorithm (step 8).
		p.key.State = Revoked
	case p.unusable:
		p.key.State = Invalid
	}
}

// isTagName follows RFC 6376 §3.2.
func isTagName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '_') {
			return false
		}
	}
	return name != ""
}

// isTagValue reports whether value consists of printable ASCII characters and white space,
// or is empty (RFC 6376 §3.2). It cannot contain semicolons.
func isTagValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && strings.IndexByte(whitespace, c) < 0 {
			return false
		}
	}
	return true
}

// isWord implements hyphenated-word of RFC 6376 §2.10: letters, digits and inner hyphens,
// starting with a letter.
func isWord(word string) bool {
	for i := range len(word) {
		if c := word[i]; !isLetter(c) && (i == 0 || !isDigit(c) && (c != '-' || i == len(word)-1)) {
			return false
		}
	}
	return word != ""
}

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
