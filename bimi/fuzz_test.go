package bimi_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// most is the limit per source.
const most = 100

// FuzzParse checks that limits hold, that a record and its canonical form are equivalent,
// and that the canonical form is well formed.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"v=BIMI1; l=https://example.com/logo.svg; a=https://example.com/mark.pem; lps=news, sales; avp=personal",
		"v=BIMI1; l=; a=;", "v=BIMI1", "v=bimi1; l=", "v = BIMI1 ;; L=x; l=http://x; a=a,b; l=; lps=,; avp=x; y", "v=BIMI1; l=https://example.com/logo.png",
		"v=BIMI1; l=https://user@example.com/; a=https://[::1]/x",
	} {
		f.Add(seed)
	}
	wellFormed := []bimi.Kind{bimi.NoEvidence, bimi.EvidenceWithoutLocation, bimi.UnsupportedFormat}
	f.Fuzz(func(t *testing.T, txt string) {
		r, ok := bimi.Parse(txt)
		if !ok {
			return
		}
		if r.Text != txt || len(r.Tags) > most || len(r.Problems) > most || len(r.LocalParts) > most {
			t.Errorf("got text %q, %d tags, %d problems, %d local parts", r.Text, len(r.Tags), len(r.Problems), len(r.LocalParts))
		}
		if declined := r.Location == "" && r.Evidence == ""; r.State == bimi.OK && declined || r.State == bimi.Declined && !declined {
			t.Errorf("got state %v with %q and %q", r.State, r.Location, r.Evidence)
		}
		again, ok := bimi.Parse(r.String())
		if !ok {
			t.Fatalf("the canonical form %q is not taken for a record", r)
		}
		if diff := cmp.Diff(r, again, cmpopts.IgnoreFields(bimi.Record{}, "Text", "State", "Tags", "Problems"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the canonical form %q states something else (-record +canonical):\n%s", r, diff)
		}
		for _, p := range again.Problems {
			if !slices.Contains(wellFormed, p.Kind) {
				t.Errorf("%q: got problem %v", r, p)
			}
		}
	})
}

// FuzzCheckImage checks that limits hold, that compression changes only the flag, and
// that an image without problems conforms to the profile.
func FuzzCheckImage(f *testing.F) {
	f.Add([]byte(goodSVG))
	f.Add([]byte(`<!DOCTYPE svg [<!ENTITY x "y">]>` + svgHead + `<title>&x;</title><script onload=""/></svg>`))
	f.Add([]byte(svgHead + `<g fill="url(x" style="url(#a)"><use href="x"/><animate/></g></svg>`))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		got := bimi.CheckImage(data)
		if len(got.Problems) > most || got.Bytes > 1<<20 {
			t.Errorf("got %d problems, %d bytes", len(got.Problems), got.Bytes)
		}
		if len(got.Problems) == 0 && (got.Version != "1.2" || got.BaseProfile != "tiny-ps" || got.Title == "" || got.Width != got.Height || got.Bytes > bimi.MaxImageBytes) {
			t.Errorf("got no problems with %+v", got)
		}
		if got.Compressed {
			return
		}
		expanded := bimi.CheckImage(packtest.Gzip(string(data)))
		if diff := cmp.Diff(got, expanded, cmpopts.IgnoreFields(bimi.Image{}, "Compressed")); diff != "" || !expanded.Compressed {
			t.Errorf("compressed %v (-plain +compressed):\n%s", expanded.Compressed, diff)
		}
	})
}

// FuzzLogotype checks that every certificate yields an image or a problem, whatever its
// logotype extension contains.
func FuzzLogotype(f *testing.F) {
	f.Add(logotype(f, packtest.Gzip(goodSVG), []byte(goodSVG)).Value)
	f.Add(logotypeURI(f, "data:image/svg+xml;base64,!", nil).Value)
	f.Add([]byte{0x30, 4, 0xa2, 2, 0xa0, 0})
	f.Add([]byte{})
	public, private, err := ed25519.GenerateKey(rand.Reader)
	musttest.Do(f, err)
	f.Fuzz(func(t *testing.T, der []byte) {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), ExtraExtensions: []pkix.Extension{{Id: logotypeID, Value: der}}}
		raw := musttest.Get(x509.CreateCertificate(rand.Reader, template, template, public, private))(t)
		got := bimi.CheckEvidence(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), bimi.Expectation{At: today})
		missing := slices.ContainsFunc(got.Problems, func(p bimi.Problem) bool { return p.Kind == bimi.MissingLogotype })
		checked := got.Image.SHA256 != "" || len(got.Image.Problems) > 0
		if got.Certificate == nil || missing == checked {
			t.Errorf("got certificate %v, problems %v, image %+v", got.Certificate != nil, got.Problems, got.Image)
		}
	})
}

// FuzzCheckEvidence checks that every document yields a certificate or a problem, and
// that limits hold.
func FuzzCheckEvidence(f *testing.F) {
	f.Add(document(issue(f, nil, mark(f))))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := bimi.CheckEvidence(data, bimi.Expectation{At: today})
		none := slices.ContainsFunc(got.Problems, func(p bimi.Problem) bool { return p.Kind == bimi.NoCertificate })
		if none != (got.Certificate == nil) || len(got.Problems) > most {
			t.Errorf("got certificate %v, problems %v", got.Certificate != nil, got.Problems)
		}
	})
}
