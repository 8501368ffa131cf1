package bimi

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// The tags of RFC 9399 §4.1.
const (
	tagSubjectLogo = 2
	tagDirect      = 0
)

// maxHashes limits the hashes of an image: each costs hashing the image.
const maxHashes = 10

var (
	errNoLogotype = errors.New("there is no logotype extension")
	errNoSubject  = errors.New("the logotype extension has no image of the subject in it")
	errNoDataURI  = errors.New("the logotype extension embeds no SVG as a data URI")
)

// logotypeData is LogotypeData of RFC 9399 §4.1. Audio is ignored.
type logotypeData struct {
	Images []logotypeImage `asn1:"optional"`
	Audio  asn1.RawValue   `asn1:"optional"`
}

// logotypeImage is LogotypeImage.
type logotypeImage struct {
	Details logotypeDetails
	Info    asn1.RawValue `asn1:"optional"`
}

// logotypeDetails is LogotypeDetails.
type logotypeDetails struct {
	MediaType string
	Hashes    []logotypeHash
	URIs      []string
}

// logotypeHash is HashAlgAndValue.
type logotypeHash struct {
	Algorithm pkix.AlgorithmIdentifier
	Value     []byte
}

// hashAlgorithms are those of RFC 5754 §2.
var hashAlgorithms = []struct {
	id  asn1.ObjectIdentifier
	new func() hash.Hash
}{
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, sha256.New},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 2}, sha512.New384},
	{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 3}, sha512.New},
}

// logotype is the embedded image of a certificate.
type logotype struct {
	data   []byte // usually compressed
	hashes []logotypeHash
}

// logotypeOf returns the subject's image in a certificate.
func logotypeOf(c *x509.Certificate) (logotype, error) {
	i := slices.IndexFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(oidLogotype) })
	if i < 0 {
		return logotype{}, errNoLogotype
	}
	images, err := subjectImages(c.Extensions[i].Value)
	if err != nil {
		return logotype{}, err
	}
	for _, image := range images {
		for _, uri := range image.Details.URIs {
			if data, ok := decodeDataURI(uri); ok {
				return logotype{data, image.Details.Hashes}, nil
			}
		}
	}
	return logotype{}, errNoDataURI
}

// subjectImages parses the subject's images in the extension: a sequence, in which [2]
// EXPLICIT contains the choice [0] direct.
func subjectImages(der []byte) ([]logotypeImage, error) {
	var extension asn1.RawValue
	if _, err := asn1.Unmarshal(der, &extension); err != nil {
		return nil, fmt.Errorf("read logotype extension: %w", err)
	}
	for rest := extension.Bytes; len(rest) > 0; {
		var element asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &element); err != nil {
			return nil, fmt.Errorf("read logotype extension: %w", err)
		}
		if element.Class != asn1.ClassContextSpecific || element.Tag != tagSubjectLogo {
			continue
		}
		var data logotypeData
		if _, err := asn1.UnmarshalWithParams(element.Bytes, &data, fmt.Sprintf("tag:%d", tagDirect)); err != nil {
			return nil, fmt.Errorf("read logotype of the subject: %w", err)
		}
		return data.Images, nil
	}
	return nil, errNoSubject
}

// decodeDataURI returns the content of a base64 data URI (RFC 2397) with an SVG media
// type.
func decodeDataURI(uri string) ([]byte, bool) {
	head, body, ok := strings.Cut(uri, ",")
	mediaType, isBase64 := strings.CutSuffix(strings.ToLower(head), ";base64")
	if !ok || !isBase64 || !strings.HasPrefix(mediaType, "data:image/svg+xml") {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(body)
	return data, err == nil
}

// hashesMatch reports whether all hashes with known algorithms match the image. RFC 6170
// §5.2 hashes the decompressed image with LF line endings; hashes of the image as is, or
// as embedded, are accepted as well. More than maxHashes do not match.
func (l logotype) hashesMatch() bool {
	if len(l.hashes) > maxHashes {
		return false
	}
	forms := [][]byte{l.data}
	if expanded, _, err := expand(l.data); err == nil {
		forms = append(forms, expanded, endLinesByLF(expanded))
	}
	for _, stated := range l.hashes {
		for _, known := range hashAlgorithms {
			isOf := func(form []byte) bool { return stated.isOf(form, known.new) }
			if stated.Algorithm.Algorithm.Equal(known.id) && !slices.ContainsFunc(forms, isOf) {
				return false
			}
		}
	}
	return true
}

// endLinesByLF replaces CR LF and CR with LF.
func endLinesByLF(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

func (h logotypeHash) isOf(data []byte, algorithm func() hash.Hash) bool {
	sum := algorithm()
	sum.Write(data)
	return bytes.Equal(sum.Sum(nil), h.Value)
}
