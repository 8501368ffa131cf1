package genuine

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"

	msgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/dmarcd/dmarcd/dkim"
	"github.com/dmarcd/dmarcd/dns"
)

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
