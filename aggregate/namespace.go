package aggregate

import (
	"bytes"
	"strings"
)

const (
	// maxBindings is how many namespaces may be declared at once. Of more the rest
	// is not known, which costs an attacker nothing but the reader neither.
	maxBindings = 16
	// maxNamespace is how many bytes of the name of a namespace are compared.
	maxNamespace = 1024
)

// binding is a namespace that an open element declares.
type binding struct{ prefix, uri string }

// namespace returns the namespace of a prefix, "" being that of elements without
// one, for an element with the given attributes. It reports false where none is
// declared.
func (s *stack) namespace(prefix, attributes []byte) (uri string, ok bool) {
	if own := attribute(attributes, declarationOf(prefix)); own != nil {
		return namespaceName(own), true
	}
	for i := len(s.bindings) - 1; i >= 0; i-- {
		if s.bindings[i].prefix == string(prefix) {
			return s.bindings[i].uri, true
		}
	}
	return "", false
}

// declare adds the namespaces that the attributes of an element declare.
func (s *stack) declare(attributes []byte) {
	for len(s.bindings) < maxBindings {
		name, value, rest := nextAttribute(attributes)
		if name == nil {
			return
		}
		attributes = rest
		if prefix, ok := bytes.CutPrefix(name, []byte("xmlns")); ok && (len(prefix) == 0 || prefix[0] == ':') {
			s.bindings = append(s.bindings, binding{string(bytes.TrimPrefix(prefix, []byte(":"))), namespaceName(value)})
		}
	}
}

// declarationOf returns the name of the attribute that declares the namespace of a
// prefix.
func declarationOf(prefix []byte) string {
	if len(prefix) == 0 {
		return "xmlns"
	}
	return "xmlns:" + string(prefix)
}

func namespaceName(value []byte) string {
	return string(bytes.TrimSpace(value[:min(len(value), maxNamespace)]))
}

// isForeign reports whether the start tag that was read is in a namespace that is
// neither the report's own nor one of DMARC. Reporters name any namespace or none
// for the report, so its own is that of its root element, whatever that is. A prefix
// that is not declared says nothing.
func (r *Reader) isForeign() bool {
	l := r.lex
	if len(l.prefix) == 0 && !bytes.Contains(l.attributes, []byte("xmlns")) {
		return false // like the element around it
	}
	uri, ok := r.stack.namespace(l.prefix, l.attributes)
	return ok && uri != "" && uri != r.home && !isDMARC(uri)
}

// isDMARC reports whether a namespace is one of the specifications or their drafts.
func isDMARC(uri string) bool {
	for _, prefix := range []string{"urn:ietf:params:xml:ns:dmarc", "http://dmarc.org/", "https://dmarc.org/"} {
		if strings.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}
