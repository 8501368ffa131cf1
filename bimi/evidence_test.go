package bimi_test

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// expect returns the expectation that a valid document meets.
func expect(root *tls.Certificate) bimi.Expectation {
	roots := x509.NewCertPool()
	roots.AddCert(root.Leaf)
	return bimi.Expectation{
		Query:       bimi.Query{Domain: "news.example.com", Organization: "example.com"},
		ImageSHA256: hashOf(goodSVG), Roots: roots, At: today,
	}
}

func TestCheckEvidenceOfCertificate(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, authority("root", false))
	middle := issue(t, root, authority("middle", true))
	for _, tt := range []struct {
		name   string
		change func(*x509.Certificate) // applied to a valid certificate
		expect func(*bimi.Expectation)
		mark   string // default "VMC"
		want   []bimi.Problem
	}{
		{name: "good"},
		{name: "a hash of the compressed image", change: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{logotype(t, packtest.Gzip(goodSVG), packtest.Gzip(goodSVG))}
		}},
		{name: "an image that is not compressed", change: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{logotype(t, []byte(goodSVG), []byte(goodSVG))}
		}},
		{
			name: "a hash of the image with its lines ended by LF", change: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{logotype(t, packtest.Gzip("\r\n"+goodSVG+"\r"), []byte("\n"+goodSVG+"\n"))}
			},
			expect: func(e *bimi.Expectation) { e.ImageSHA256 = hashOf("\r\n" + goodSVG + "\r") },
		},
		{name: "a critical logotype", change: func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = true }},
		{name: "the image of the record is not known", expect: func(e *bimi.Expectation) { e.ImageSHA256 = "" }},
		{
			name: "another image", expect: func(e *bimi.Expectation) { e.ImageSHA256 = hashOf("other") },
			want: []bimi.Problem{{Kind: bimi.ImageMismatch, Subject: "mark", Text: hashOf(goodSVG)}},
		},
		{
			name: "a hash of something else", change: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{logotype(t, []byte(goodSVG), []byte("other"))}
			},
			want: []bimi.Problem{{Kind: bimi.LogotypeHash, Subject: "mark", Text: hashOf(goodSVG)}},
		},
		{name: "ten hashes", change: func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{logotype(t, []byte(goodSVG), slices.Repeat([][]byte{[]byte(goodSVG)}, 10)...)}
		}},
		{
			name: "eleven hashes", change: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{logotype(t, []byte(goodSVG), slices.Repeat([][]byte{[]byte(goodSVG)}, 11)...)}
			},
			want: []bimi.Problem{{Kind: bimi.LogotypeHash, Subject: "mark", Text: hashOf(goodSVG)}},
		},
		{
			name: "an image that cannot be expanded", change: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{logotype(t, []byte{0x1f, 0x8b}, []byte{0x1f, 0x8b})}
			},
			want: []bimi.Problem{{Kind: bimi.ImageMismatch, Subject: "mark"}},
		},
		{
			name: "no logotype", change: func(c *x509.Certificate) { c.ExtraExtensions = nil },
			want: []bimi.Problem{{Kind: bimi.MissingLogotype, Subject: "mark", Text: "there is no logotype extension"}},
		},
		{
			name: "a logotype elsewhere", change: func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{logotypeURI(t, "https://example.com/logo.svg", nil)}
			},
			want: []bimi.Problem{{Kind: bimi.MissingLogotype, Subject: "mark", Text: "the logotype extension embeds no SVG as a data URI"}},
		},
		{
			name: "a logotype of the issuer only", change: func(c *x509.Certificate) {
				c.ExtraExtensions[0].Value = marshal(t, []asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 1, IsCompound: true}}, "")
			},
			want: []bimi.Problem{{Kind: bimi.MissingLogotype, Subject: "mark", Text: "the logotype extension has no image of the subject in it"}},
		},
		{name: "a mark in prior use", mark: "CMC", change: func(c *x509.Certificate) { c.Subject.ExtraNames[1].Value = "Prior Use Mark" }},
		{name: "a variant of a registered mark", mark: "CMC", change: func(c *x509.Certificate) { c.Subject.ExtraNames[1].Value = "Modified Registered Mark" }},
		{name: "a government's mark", change: func(c *x509.Certificate) { c.Subject.ExtraNames[1].Value = "Government Mark" }},
		{
			name: "an unknown mark", mark: "unknown", change: func(c *x509.Certificate) { c.Subject.ExtraNames[1].Value = "Birth Mark" },
			want: []bimi.Problem{{Kind: bimi.UnknownMark, Subject: "mark", Text: "Birth Mark"}},
		},
		{
			name: "no mark", mark: "unknown", change: func(c *x509.Certificate) { c.Subject.ExtraNames = nil },
			want: []bimi.Problem{{Kind: bimi.UnknownMark, Subject: "mark"}},
		},
		{name: "the author domain itself", change: func(c *x509.Certificate) { c.DNSNames = []string{"x.example", "news.example.com"} }},
		{name: "the domain with the selector", change: func(c *x509.Certificate) { c.DNSNames = []string{"default._bimi.example.com"} }},
		{
			name: "the domain with another selector", change: func(c *x509.Certificate) { c.DNSNames = []string{"sale._bimi.example.com"} },
			want: []bimi.Problem{{Kind: bimi.WrongDomain, Subject: "mark", Text: "sale._bimi.example.com"}},
		},
		{
			name: "other domains", change: func(c *x509.Certificate) { c.DNSNames = []string{"example.net", "www.example.com"} },
			want: []bimi.Problem{{Kind: bimi.WrongDomain, Subject: "mark", Text: "example.net www.example.com"}},
		},
		{
			name: "no domain", change: func(c *x509.Certificate) { c.DNSNames = nil }, expect: func(e *bimi.Expectation) { e.Query.Organization = "" },
			want: []bimi.Problem{{Kind: bimi.WrongDomain, Subject: "mark"}},
		},
		{
			name: "not meant for marks", change: func(c *x509.Certificate) { c.UnknownExtKeyUsage = nil },
			want: []bimi.Problem{{Kind: bimi.WrongKeyUsage, Subject: "mark"}},
		},
		{
			name: "expired, and nothing else", expect: func(e *bimi.Expectation) { e.At = today.AddDate(2, 0, 0) },
			want: []bimi.Problem{{Kind: bimi.Expired, Subject: "mark", Text: "2027-05-15T09:30:00Z"}},
		},
		{
			name: "not valid yet", change: func(c *x509.Certificate) { c.NotBefore, c.NotAfter = today.Add(time.Hour), today.AddDate(0, 1, 0) },
			want: []bimi.Problem{{Kind: bimi.NotYetValid, Subject: "mark", Text: "2026-11-15T10:30:00Z"}},
		},
		{
			name: "expires in 14 days", change: func(c *x509.Certificate) { c.NotBefore, c.NotAfter = today, today.AddDate(0, 0, 14) },
			want: []bimi.Problem{{Kind: bimi.ExpiresSoon, Subject: "mark", Text: "2026-11-29T09:30:00Z"}},
		},
		{name: "expires in 15 days", change: func(c *x509.Certificate) { c.NotBefore, c.NotAfter = today, today.AddDate(0, 0, 15) }},
		{
			name: "no root is trusted", expect: func(e *bimi.Expectation) { e.Roots = nil },
			want: []bimi.Problem{{Kind: bimi.UntrustedChain, Subject: "mark", Text: "x509: certificate signed by unknown authority"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			template, want := mark(t), expect(root)
			if tt.change != nil {
				tt.change(&template)
			}
			if tt.expect != nil {
				tt.expect(&want)
			}
			got := bimi.CheckEvidence(document(issue(t, middle, template), middle), want)
			if !slices.Equal(got.Problems, tt.want) {
				t.Errorf("got %v want %v", got.Problems, tt.want)
			}
			tt.mark = cmp.Or(tt.mark, "VMC")
			if got.Mark.String() != tt.mark || got.Certificate == nil {
				t.Errorf("got mark %v, certificate %v; want %s", got.Mark, got.Certificate, tt.mark)
			}
		})
	}
}

func TestCheckEvidenceOfDocument(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, authority("root", false))
	middle := issue(t, root, authority("middle", true))
	server := issue(t, root, authority("server", false))
	leaf := issue(t, middle, mark(t))
	direct := issue(t, root, mark(t))
	misled := issue(t, server, mark(t))
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("not really")})
	junk := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")})
	many := slices.Repeat([]*tls.Certificate{middle}, 10)
	for _, tt := range []struct {
		name     string
		document []byte
		want     []bimi.Problem
	}{
		{name: "with the root", document: document(leaf, middle, root)},
		{name: "issued by the root", document: document(direct)},
		{name: "text around the certificates", document: append([]byte("Example's mark\n"), document(leaf, middle)...)},
		{name: "empty", want: []bimi.Problem{{Kind: bimi.NoCertificate}}},
		{name: "no PEM", document: []byte("<html></html>"), want: []bimi.Problem{{Kind: bimi.NoCertificate}}},
		{name: "authorities only", document: document(middle, root), want: []bimi.Problem{{Kind: bimi.NoCertificate}}},
		{name: "too large", document: bytes.Repeat([]byte("x"), 1<<20+1), want: []bimi.Problem{{Kind: bimi.DocumentTooLarge, Text: "more than 1 MiB"}, {Kind: bimi.NoCertificate}}},
		{
			name: "without the issuer", document: document(leaf),
			want: []bimi.Problem{{Kind: bimi.UntrustedChain, Subject: "mark", Text: "x509: certificate signed by unknown authority"}},
		},
		{name: "the issuer first", document: document(middle, leaf), want: []bimi.Problem{{Kind: bimi.OutOfOrder, Subject: "mark"}, {Kind: bimi.OutOfOrder, Subject: "mark", Text: "root"}}},
		{name: "the root before the issuer", document: document(leaf, root, middle), want: []bimi.Problem{{Kind: bimi.OutOfOrder, Subject: "root", Text: "middle"}, {Kind: bimi.OutOfOrder, Subject: "middle", Text: "root"}}},
		{
			name: "two marks", document: document(leaf, middle, direct),
			want: []bimi.Problem{{Kind: bimi.SeveralMarks, Subject: "mark"}, {Kind: bimi.OutOfOrder, Subject: "mark", Text: "root"}},
		},
		{name: "an issuer that is not meant for marks", document: document(misled, server), want: []bimi.Problem{{Kind: bimi.WrongKeyUsage, Subject: "server"}}},
		{name: "a private key", document: append(document(leaf, middle), key...), want: []bimi.Problem{{Kind: bimi.UnexpectedBlock, Text: "PRIVATE KEY"}}},
		{name: "junk", document: append(document(leaf, middle), junk...), want: []bimi.Problem{{Kind: bimi.BadCertificate, Text: "x509: malformed certificate"}}},
		{name: "a key of 8192 bits", document: document(leaf, middle, withKey(t, root, authority("root", false), rsaKey(8192)))},
		{
			name: "a key of 8193 bits", document: document(leaf, middle, withKey(t, root, authority("root", false), rsaKey(8193))),
			want: []bimi.Problem{{Kind: bimi.BadCertificate, Subject: "root", Text: "its key is too long"}},
		},
		{
			name: "eleven certificates", document: document(append([]*tls.Certificate{leaf}, many...)...),
			want: []bimi.Problem{{Kind: bimi.TooManyCertificates}, {Kind: bimi.OutOfOrder, Subject: "middle", Text: "root"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := bimi.CheckEvidence(tt.document, expect(root)); !slices.Equal(got.Problems, tt.want) {
				t.Errorf("got %v want %v", got.Problems, tt.want)
			}
		})
	}
}

func TestCheckEvidenceTrustsAMarkItself(t *testing.T) {
	t.Parallel()
	leaf := issue(t, nil, mark(t))
	if got := bimi.CheckEvidence(document(leaf), expect(leaf)); len(got.Problems) != 0 {
		t.Errorf("got %v want no problems", got.Problems)
	}
}

func TestCheckEvidenceOfBadLogotype(t *testing.T) {
	t.Parallel()
	root := issue(t, nil, authority("root", false))
	for _, tt := range []struct {
		name string
		der  []byte
		want string // prefix of the problem's text
	}{
		{"nothing", nil, "read logotype extension: "},
		{"a sequence of junk", []byte{0x30, 1, 0xff}, "read logotype extension: "},
		{"a subject that is none", []byte{0x30, 4, 0xa2, 2, 5, 0}, "read logotype of the subject: "},
		{"a subject without images", []byte{0x30, 4, 0xa2, 2, 0xa0, 0}, "the logotype extension embeds no SVG"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			template := mark(t)
			template.ExtraExtensions = []pkix.Extension{{Id: logotypeID, Value: tt.der}}
			got := bimi.CheckEvidence(document(issue(t, root, template)), expect(root))
			if len(got.Problems) != 1 || got.Problems[0].Kind != bimi.MissingLogotype || !strings.HasPrefix(got.Problems[0].Text, tt.want) {
				t.Errorf("got %v want missing-logotype, %s", got.Problems, tt.want)
			}
		})
	}
}
