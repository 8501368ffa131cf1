// Package shape holds the JSON documents of the database: the result of a check, its
// changes, what a report says beside its records, what a record says beside its columns,
// and what an event says beside its kind. They are not the shapes of the API, so either can
// change without the other.
//
// Every document names its version, but that of a record, which has none in version 1:
//
//	document = "{" `"v":` version *( "," member ) "}"
//	version  = 1*DIGIT
//
// The newest version is written, and every version is read that ever was written. A
// change of what is written needs a new version: a new type beside the old one, and a
// golden file in testdata. The columns of the database are left to package store.
package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// decoder reads the documents of one version.
type decoder[T any] func(document []byte) (T, error)

// decoders reads the documents of one kind: version 1 with the first, and so on.
type decoders[T any] []decoder[T]

// stored is a type that documents of one version are read into.
type stored[T any] interface{ value() T }

// as returns the decoder for documents of the form of S.
func as[S stored[T], T any]() decoder[T] {
	return func(document []byte) (T, error) {
		var s S
		if err := json.Unmarshal(document, &s); err != nil {
			var none T
			return none, err
		}
		return s.value(), nil
	}
}

// decode reads a document of any version. kind is for the error.
func (d decoders[T]) decode(kind, document string) (T, error) {
	var none T
	v, ok := version(document)
	switch {
	case !ok:
		return none, fmt.Errorf("stored %s: the document begins with no version", kind)
	case v > len(d):
		return none, newerError(kind, v, len(d))
	}
	value, err := d[v-1]([]byte(document))
	if err != nil {
		return none, fmt.Errorf("stored %s: %w", kind, err)
	}
	return value, nil
}

// newerError refuses a document of a version that a later dmarcd wrote.
func newerError(kind string, version, newest int) error {
	return fmt.Errorf("stored %s: the document has version %d, and this dmarcd reads up to version %d: "+
		"run the dmarcd that wrote it, or a later one", kind, version, newest)
}

// version returns the version that a document names first.
func version(document string) (v int, ok bool) {
	rest, ok := strings.CutPrefix(document, `{"v":`)
	end := strings.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, false
	}
	v, err := strconv.Atoi(rest[:end])
	return v, err == nil && v > 0
}

// encode returns a document. The types of this package hold texts, numbers and lists of
// them, which can all be encoded. It leaves < > & readable.
func encode(s any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// convert maps a list; an empty one becomes nil, which is left out.
func convert[A, B any](list []A, f func(A) B) []B {
	var converted []B
	for _, a := range list {
		converted = append(converted, f(a))
	}
	return converted
}
