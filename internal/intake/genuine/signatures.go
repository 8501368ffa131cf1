package genuine

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	msgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

// maxSignatures limits the signatures that are verified, from the top: each costs a query and
// a pass over the mail (RFC 6376 §6.1 allows a limit).
const maxSignatures = 10

// DKIM results (RFC 8601 §2.7.1).
const (
	resultNone      = "none"
	resultPass      = "pass"
	resultFail      = "fail"
	resultPolicy    = "policy"
	resultTempError = "temperror"
	resultPermError = "permerror"
)

// signature is the result of one signature.
type signature struct {
	// domain is the d= tag, selector the s= tag.
	domain, selector string

	result    string
	alignment dmarc.Alignment
	// reason is why the result is not pass.
	reason string
}

// errFields means that the library found other signatures than readHeader.
var errFields = errors.New("other signatures")

// verify verifies the signatures of a mail; fields are their values. It returns an error if the
// mail could not be read completely: errBlank, or that of the reader or the library.
func (v *Verifier) verify(ctx context.Context, mail io.ReadSeeker, fields []string, from string) (signatures []signature, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	if _, err := mail.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	body := &guard{ctx: ctx, r: mail}
	keys := &keyring{ctx: ctx, resolver: v.Resolver}
	verified, err := msgauth.VerifyWithOptions(body, &msgauth.VerifyOptions{
		LookupTXT: keys.lookup, MaxVerifications: maxSignatures,
	})
	fields = fields[:min(len(fields), maxSignatures)]
	switch {
	case body.err != nil:
		return nil, body.err
	case err != nil && !errors.Is(err, msgauth.ErrTooManySignatures):
		return nil, err
	case len(verified) != len(fields):
		return nil, errFields
	}
	for i, one := range verified {
		if one.Err == nil && !keys.allow(one, fields[i]) {
			one.Err = errIdentity
		}
		s := signature{domain: dns.Name(one.Domain), result: resultOf(one.Err, fields[i])}
		s.selector, _ = tag(fields[i], "s")
		if one.Err != nil {
			s.reason = strings.TrimPrefix(one.Err.Error(), "dkim: ")
		}
		s.alignment = dmarc.Align(ctx, v.Resolver, from, s.domain, dmarc.Relaxed)
		signatures = append(signatures, s)
	}
	return signatures, nil
}

// resultOf maps an error of the library to a DKIM result.
func resultOf(err error, field string) string {
	switch {
	case err == nil:
		return resultPass
	case msgauth.IsTempFail(err):
		return resultTempError
	case msgauth.IsPermFail(err), errors.Is(err, errIdentity):
		return resultPermError
	case isPartial(field):
		// Anyone can append text to a partly signed body. RFC 8460 §3 forbids it for TLS
		// reports, and the library rejects it for all mail.
		return resultPolicy
	default:
		return resultFail
	}
}

// isPartial reports whether a signature covers only part of the body (tag l).
func isPartial(field string) bool {
	_, partial := tag(field, "l")
	return partial
}

// tag returns the value of a signature tag, without white space.
func tag(field, name string) (string, bool) {
	for text := range strings.SplitSeq(field, ";") {
		if is, value, _ := strings.Cut(text, "="); strings.TrimSpace(is) == name {
			return strings.Join(strings.Fields(value), ""), true
		}
	}
	return "", false
}

// maxKeyBits limits the size of RSA keys.
const maxKeyBits = 8192

var (
	// errNoKey means that there is no usable key.
	errNoKey = errors.New("no usable key")
	// errIdentity means that the key does not cover the identity of the signature.
	errIdentity = errors.New("the key does not allow subdomains")
)

// keyring looks up the keys of the signatures of one mail. It is safe for concurrent use.
type keyring struct {
	ctx      context.Context // the library's callback takes no context
	resolver dns.Resolver

	mu sync.Mutex
	// strict holds the names of keys that do not cover subdomains.
	strict []string
}

// lookup returns the key record at a name, rewritten from what our parser has read, without
// details that the library rejects, such as missing padding. A key for TLS reports only (RFC
// 8460 §3) counts as one for mail.
func (k *keyring) lookup(name string) ([]string, error) {
	selector, domain, _ := strings.Cut(name, "._domainkey.")
	found := dkim.LookupKey(k.ctx, k.resolver, selector, domain)
	if found.Status == dkim.StatusInconclusive {
		return nil, &net.DNSError{Err: found.Answer.Reason, Name: name, IsTemporary: true}
	}
	key, ok := found.Key()
	if !ok || found.Status != dkim.StatusFound || key.Bits > maxKeyBits || !isForMail(key) {
		return nil, errNoKey
	}
	data, err := encoded(key)
	if err != nil {
		return nil, err
	}
	if key.Strict {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.strict = append(k.strict, name)
	}
	text := "v=DKIM1; k=" + key.Algorithm + "; p=" + base64.StdEncoding.EncodeToString(data)
	if len(key.Hashes) > 0 {
		text += "; h=" + strings.Join(key.Hashes, ":")
	}
	return []string{text}, nil
}

// allow reports whether the key covers the identity of the signature: with the flag s it does
// not cover subdomains (RFC 6376 §3.6.1), which the library does not check.
func (k *keyring) allow(verified *msgauth.Verification, field string) bool {
	selector, _ := tag(field, "s")
	identity := verified.Identifier[strings.LastIndexByte(verified.Identifier, '@')+1:]
	return strings.EqualFold(identity, verified.Domain) || !slices.Contains(k.strict, dkim.QueryName(selector, verified.Domain))
}

// isForMail reports whether a key may sign report mail.
func isForMail(key dkim.Key) bool {
	return key.ForEmail() || slices.Contains(key.Services, "tlsrpt")
}

// encoded returns a key in the encoding of its record.
func encoded(key dkim.Key) ([]byte, error) {
	switch public := key.PublicKey.(type) {
	case *rsa.PublicKey:
		return x509.MarshalPKIXPublicKey(public)
	case ed25519.PublicKey:
		return public, nil
	default:
		return nil, errNoKey
	}
}

// maxBlankRun limits a run of white space and empty lines. The library buffers such a run and
// scans it again for every read.
const maxBlankRun = 64 << 10

// errBlank means that a mail exceeds maxBlankRun.
var errBlank = errors.New("too much white space")

// guard reads a mail for the library. The library leaks goroutines on a read error, so it sees
// EOF instead, and err holds the error.
type guard struct {
	ctx   context.Context // the library takes no context
	r     io.Reader
	blank int // length of the current run
	err   error
}

// Read implements io.Reader. It stops when the context ends.
func (g *guard) Read(p []byte) (int, error) {
	if g.err == nil {
		g.err = g.ctx.Err()
	}
	if g.err != nil {
		return 0, io.EOF
	}
	n, err := g.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		g.err = err
	}
	for _, c := range p[:n] {
		switch c {
		case ' ', '\t', '\r', '\n':
			g.blank++
		default:
			g.blank = 0
		}
		if g.blank > maxBlankRun {
			g.err = errBlank
		}
	}
	if g.err != nil {
		return 0, io.EOF
	}
	return n, err
}
