package bimi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

const (
	// MaxImageBytes is the size limit of an uncompressed SVG.
	MaxImageBytes = 32 << 10
	// maxDocumentBytes limits how much of an image or evidence document is read, also
	// when decompressing.
	maxDocumentBytes = 1 << 20
)

var errTooLarge = errors.New("more than 1 MiB")

// Image is the result of checking an image.
type Image struct {
	// Compressed is true for SVGZ.
	Compressed bool
	// Bytes is the uncompressed size.
	Bytes int
	// SHA256 is the hash of the uncompressed SVG in lower-case hexadecimal; "" if it
	// could not be decompressed.
	SHA256 string
	// Version and BaseProfile are attributes of the root element.
	Version, BaseProfile string
	// Title is the trimmed text of the title.
	Title string
	// Width and Height come from viewBox, or from the attributes of these names; 0 if
	// unknown.
	Width, Height float64
	// Problems contains at most 100 distinct problems.
	Problems []Problem
}

// CheckImage validates an SVG or SVGZ for BIMI: SVG Tiny Portable/Secure, at most 32 KB.
// It checks attributes that matter for security and those that generators are known to
// add; it is not a schema validator. It reads at most 1 MiB.
func CheckImage(data []byte) Image {
	var image Image
	var found problems
	svg, compressed, err := expand(data)
	image.Compressed = compressed
	switch {
	case errors.Is(err, errTooLarge):
		found.note(true, ImageTooLarge, "", err.Error())
	case err != nil:
		found.note(true, BadCompression, "", err.Error())
	default:
		sum := sha256.Sum256(svg)
		image.Bytes, image.SHA256 = len(svg), hex.EncodeToString(sum[:])
		found.note(len(svg) > MaxImageBytes, ImageTooLarge, "", formatBytes(len(svg)))
		reader := svgReader{image: &image, problems: &found}
		reader.read(svg)
	}
	image.Problems = found
	return image
}

// expand decompresses gzip data, and returns other data unchanged.
func expand(data []byte) (content []byte, compressed bool, err error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if len(data) > maxDocumentBytes {
			return nil, false, errTooLarge
		}
		return data, false, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, true, err
	}
	content, err = readBounded(z)
	return content, true, err
}

// readBounded reads all of r, or returns errTooLarge.
func readBounded(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxDocumentBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxDocumentBytes {
		return nil, errTooLarge
	}
	return content, nil
}
