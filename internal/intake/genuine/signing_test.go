package genuine_test

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	msgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/dmarcd/dmarcd/internal/musttest"
)

// Keys are generated once because it is slow.
var (
	rsaKey = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	edKey  = sync.OnceValue(func() crypto.Signer {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return must(private, err)
	})
	otherKey = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// published returns the quoted TXT record of a key, with more tags.
func published(key crypto.Signer, more string) string {
	algorithm, data := "rsa", []byte(nil)
	switch public := key.Public().(type) {
	case *rsa.PublicKey:
		data = must(x509.MarshalPKIXPublicKey(public))
	case ed25519.PublicKey:
		algorithm, data = "ed25519", public
	}
	text := base64.StdEncoding.EncodeToString(data)
	half := len(text) / 2
	return fmt.Sprintf(`"v=DKIM1; k=%s; %sp=%s" "%s"`, algorithm, more, text[:half], text[half:])
}

type signing struct {
	domain   string
	selector string // "rsa" where it is empty
	key      crypto.Signer
	identity string
	expires  time.Time
}

// sign prepends a signature to a mail.
func sign(t *testing.T, mail string, s signing) string {
	t.Helper()
	s.selector = cmp.Or(s.selector, "rsa")
	if s.key == nil {
		s.key = rsaKey()
	}
	var signed bytes.Buffer
	err := msgauth.Sign(&signed, strings.NewReader(mail), &msgauth.SignOptions{
		Domain: s.domain, Selector: s.selector, Signer: s.key, Identifier: s.identity, Expiration: s.expires,
		HeaderCanonicalization: msgauth.CanonicalizationRelaxed,
		BodyCanonicalization:   msgauth.CanonicalizationRelaxed,
		HeaderKeys:             []string{"From", "Subject", "Content-Type", "Content-Transfer-Encoding"},
	})
	musttest.Do(t, err)
	return signed.String()
}

// signPartly prepends a signature that covers only the start of the body. It is valid by RFC
// 6376, but the library does not create it.
func signPartly(t *testing.T, mail, domain string, length int) string {
	t.Helper()
	header, body, _ := strings.Cut(mail, "\r\n\r\n")
	from, _, _ := strings.Cut(header, "\r\n")
	hashed := sha256.Sum256([]byte(body[:length]))
	field := fmt.Sprintf("DKIM-Signature: v=1; a=ed25519-sha256; c=simple/simple; d=%s; s=ed; h=From; l=%d; bh=%s; b=",
		domain, length, base64.StdEncoding.EncodeToString(hashed[:]))
	digest := sha256.Sum256([]byte(from + "\r\n" + field))
	signature := musttest.Get(edKey().Sign(rand.Reader, digest[:], crypto.Hash(0)))(t)
	return field + base64.StdEncoding.EncodeToString(signature) + "\r\n" + mail
}
