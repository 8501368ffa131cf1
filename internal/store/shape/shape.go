// Package shape holds the JSON documents of the database: the result of a check, its
// changes, what a report says beside its records, what a record says beside its columns,
// and what an event says beside its kind. They are not the shapes of the API, so either can
// change without the other. A check is stored as its facts are: their tags name the members.
//
// Every document names its version, but that of a record, which has none in version 1:
//
//	document = "{" `"v":` version *( "," member ) "}"
//	version  = 1*DIGIT
//
// The newest version is written, and every version is read that ever was released: so far the
// first. A change of what is written then needs a new version: a new type beside the old one, and
// a golden file in testdata. The columns of the database are left to package store.
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

// decode reads a document of the form of S. kind is for the error.
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

// newerError refuses a document of a version that a later dmarcd wrote.
func newerError(kind string, version int) error {
	return fmt.Errorf("stored %s: the document has version %d, and this dmarcd reads up to version 1: "+
		"run the dmarcd that wrote it, or a later one", kind, version)
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
