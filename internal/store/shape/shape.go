// Package shape has the JSON documents in the database: the result of a check, its changes, the
// parts of a report besides its records, of a record besides its columns, and of an event besides
// its kind. They are independent of the shapes of the API. A check is stored as its facts: their
// tags name the members.
//
// Every document starts with its version, except that of a record in version 1:
//
//	document = "{" `"v":` version *( "," member ) "}"
//	version  = 1*DIGIT
//
// The newest version is written, and every released version can be read. Once a version is
// released, a change of what is written needs a new one: a new type beside the old one, and a
// golden file in testdata. The columns of the database are left to package store.
package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// stored is a type that documents are read into.
type stored[T any] interface{ value() T }

// decode reads a document of the type S. kind names it in errors.
func decode[S stored[T], T any](kind, document string) (T, error) {
	var s S
	var none T
	v, ok := version(document)
	switch {
	case !ok:
		return none, fmt.Errorf("stored %s: the document begins with no version", kind)
	case v > 1:
		return none, newerError(kind, v)
	}
	if err := json.Unmarshal([]byte(document), &s); err != nil {
		return none, fmt.Errorf("stored %s: %w", kind, err)
	}
	return s.value(), nil
}

// newerError is for a document that a later dmarcd wrote.
func newerError(kind string, version int) error {
	return fmt.Errorf("stored %s: the document has version %d, and this dmarcd reads up to version 1: "+
		"run the dmarcd that wrote it, or a later one", kind, version)
}

// version returns the version at the start of a document.
func version(document string) (v int, ok bool) {
	rest, ok := strings.CutPrefix(document, `{"v":`)
	end := strings.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return 0, false
	}
	v, err := strconv.Atoi(rest[:end])
	return v, err == nil && v > 0
}

// encode returns a document, without escaping < > &. All types of this package can be encoded.
func encode(s any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// convert maps a list; an empty one becomes nil, which is omitted.
func convert[A, B any](list []A, f func(A) B) []B {
	var converted []B
	for _, a := range list {
		converted = append(converted, f(a))
	}
	return converted
}
