package aggregate

import (
	"bytes"
	"strings"
)

const (
	// maxBindings limits the namespaces that are in scope at once. Further declarations
	// are ignored.
	maxBindings = 16
	// maxNamespace is how many bytes of a namespace name are compared.
	maxNamespace = 1024
)

// binding is a namespace declaration of an open element.
type binding struct{ prefix, uri string }

// namespace returns the namespace of a prefix for an element with the given attributes;
// the prefix "" means the default namespace. ok is false if it is not declared.
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

// declare adds the namespace declarations among the attributes of an element.
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

// declarationOf returns the name of the attribute that declares a prefix.
func declarationOf(prefix []byte) string {
	if len(prefix) == 0 {
		return "xmlns"
	}
	return "xmlns:" + string(prefix)
}

func namespaceName(value []byte) string {
	return string(bytes.TrimSpace(value[:min(len(value), maxNamespace)]))
}

// isForeign reports whether the current start tag is in a namespace that is neither that
// of the root element nor one of DMARC. Reporters use any namespace or none for the
// report, so that of the root counts as its own. Undeclared prefixes are ignored.
func (r *Reader) isForeign() bool {
	l := r.lex
	if len(l.prefix) == 0 && !bytes.Contains(l.attributes, []byte("xmlns")) {
		return false // same namespace as the parent
	}
	uri, ok := r.stack.namespace(l.prefix, l.attributes)
	return ok && uri != "" && uri != r.namespace && !isDMARC(uri)
}

// isDMARC reports whether a namespace belongs to a specification or one of its drafts.
func isDMARC(uri string) bool {
	for _, prefix := range []string{"urn:ietf:params:xml:ns:dmarc", "http://dmarc.org/", "https://dmarc.org/"} {
		if strings.HasPrefix(uri, prefix) {
			return true
		}
	}
	return false
}
