// Package gziptest compresses data for tests. Damaged and hostile files are up to the test.
package gziptest

import (
	"bytes"
	"compress/gzip"
)

// Pack returns content in gzip.
func Pack[T ~string | ~[]byte](content T) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(content)) // a buffer never fails
	_ = w.Close()
	return packed.Bytes()
}
