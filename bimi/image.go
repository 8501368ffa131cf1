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
	// MaxImageBytes is how large an SVG may be, after it is expanded.
	MaxImageBytes = 32 << 10
	// maxDocumentBytes is how much of an image or an evidence document is read at
	// all, also after it is expanded.
	maxDocumentBytes = 1 << 20
)

// errTooLarge tells that the limit of a document is exceeded.
var errTooLarge = errors.New("more than 1 MiB")

// Image is what was found out about an image.
type Image struct {
	// Compressed reports that the image came as SVGZ.
	Compressed bool
	// Bytes is the size of the SVG after it is expanded.
	Bytes int
	// SHA256 is the hash of the SVG after it is expanded, in lower-case
	// hexadecimal digits; "" where it could not be.
	SHA256 string
	// Version and BaseProfile are the attributes of the root.
	Version, BaseProfile string
	// Title is the text of the title, without the white space around it.
	Title string
	// Width and Height tell the shape, from viewBox or else from the attributes
	// of these names; 0 where it is not told.
	Width, Height float64
	// Problems holds what is wrong, at most 100, each once.
	Problems []Problem
}

// CheckImage judges an SVG or SVGZ against the rules for BIMI: SVG Tiny
// Portable/Secure, and a size of at most 32 KB. Of the attributes it judges those
// that matter for security and those that generators are known to add; it is not a
// schema validator. At most 1 MiB is looked at.
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

// expand returns the content of gzip data, and other data as it is.
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
