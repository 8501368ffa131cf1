// Package packtest compresses data for tests. Damaged and hostile files are up to the test.
package packtest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
)

// Gzip returns content in gzip.
func Gzip[T ~string | ~[]byte](content T) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(content)) // a buffer never fails
	_ = w.Close()
	return packed.Bytes()
}

// Zip returns a zip archive of names and contents.
func Zip(namesAndContents ...string) []byte {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for i := 0; i < len(namesAndContents); i += 2 {
		w, _ := z.Create(namesAndContents[i]) // a buffer never fails
		_, _ = w.Write([]byte(namesAndContents[i+1]))
	}
	_ = z.Close()
	return packed.Bytes()
}
