package aggregate

import "bytes"

type stack struct {
	open []openElement
	// bindings are the namespace declarations of open elements, outermost first.
	bindings []binding
	// names are the concatenated local names of the open elements.
	names []byte
	// rootName is the name of the first element, "" before it.
	rootName string
	declared bool // there was an XML declaration

	// innermost maps each name in lower case to its innermost open element among the
	// first indexed ones. It is built only if an end tag does not match the innermost
	// element.
	innermost map[string]int
	indexed   int
	lower     []byte // buffer for a name in lower case
}

type openElement struct {
	node node
	// name is the offset of its local name in stack.names.
	name int
	// bindings is the number of namespace declarations outside of it.
	bindings int
	// outer is the index of the next outer element with the same name, -1 if there is
	// none. It is set when the element is indexed.
	outer int
}

// reset returns an empty stack that reuses the memory of s.
func (s *stack) reset() stack {
	return stack{open: s.open[:0], bindings: s.bindings[:0], names: s.names[:0], lower: s.lower[:0]}
}

// top returns the innermost open element, or outside.
func (s *stack) top() node {
	if len(s.open) == 0 {
		return outside
	}
	return s.open[len(s.open)-1].node
}

func (s *stack) push(n node, name, attributes []byte) {
	s.open = append(s.open, openElement{node: n, name: len(s.names), bindings: len(s.bindings)})
	s.names = append(s.names, name...)
	if len(attributes) > 0 && n != ignored {
		s.declare(attributes)
	}
}

func (s *stack) pop() node {
	top := len(s.open) - 1
	last := s.open[top]
	if s.indexed > top {
		name := s.lowerCase(s.names[last.name:])
		if last.outer < 0 {
			delete(s.innermost, string(name))
		} else {
			s.innermost[string(name)] = last.outer
		}
		s.indexed = top
	}
	s.open = s.open[:top]
	s.names = s.names[:last.name]
	s.bindings = s.bindings[:last.bindings]
	return last.node
}

// cut closes all but the outer elements, and calls closed for each.
func (s *stack) cut(outer int, closed func(node)) {
	for len(s.open) > outer {
		closed(s.pop())
	}
}

// named returns the index of the innermost open element with that name in any case, -1 if
// there is none. Its cost does not depend on the number of open elements.
func (s *stack) named(name []byte) int {
	top := len(s.open) - 1
	if top < 0 {
		return -1
	}
	if bytes.Equal(s.names[s.open[top].name:], name) {
		return top
	}
	if s.innermost == nil {
		s.innermost = make(map[string]int)
	}
	for ; s.indexed <= top; s.indexed++ {
		s.index(s.indexed)
	}
	if i, ok := s.innermost[string(s.lowerCase(name))]; ok {
		return i
	}
	return -1
}

// index adds element i to innermost. All outer ones must be indexed.
func (s *stack) index(i int) {
	end := len(s.names)
	if i+1 < len(s.open) {
		end = s.open[i+1].name
	}
	name := s.lowerCase(s.names[s.open[i].name:end])
	outer, ok := s.innermost[string(name)]
	if !ok {
		outer = -1
	}
	s.open[i].outer = outer
	s.innermost[string(name)] = i
}

// lowerCase returns a name in lower case. The result is valid until the next call.
func (s *stack) lowerCase(name []byte) []byte {
	s.lower = s.lower[:0]
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.lower = append(s.lower, c)
	}
	return s.lower
}

// start handles a start tag.
func (r *Reader) start() error {
	if len(r.stack.open) >= r.limits.Depth {
		return reject(RejectedLimit, "the elements are nested too deep")
	}
	n, err := r.enter()
	if err != nil {
		return err
	}
	if n == record {
		if r.begun++; r.begun > r.limits.Records {
			return reject(RejectedLimit, "the report has too many records")
		}
	}
	r.opened(n)
	if r.lex.closed {
		r.closed(n)
		return nil
	}
	if n.isValue() {
		if text, ok := r.lex.simpleValue(); ok {
			return r.takeValue(n, text)
		}
	}
	r.stack.push(n, r.lex.name, r.lex.attributes)
	return nil
}

// takeValue handles a whole value. Most are short and contain nothing to decode.
func (r *Reader) takeValue(n node, text []byte) error {
	if len(text) <= r.limits.TextBytes && allPlain(text) {
		r.set(n, r.text(n, text))
		return nil
	}
	err := r.addText(&r.value, text, false)
	r.closed(n)
	return err
}

// enter returns the node of a start tag, and closes elements that must have been left
// open.
func (r *Reader) enter() (node, error) {
	name, parent := r.lex.name, r.stack.top()
	switch parent {
	case outside:
		return r.enterOutside(name)
	case ignored, extension:
		return ignored, nil
	}
	switch {
	case r.isForeign():
		// RFC 9990 allows elements of other namespaces in a record.
		r.quirks.NoteIf(parent != record, ElementForeign)
		return ignored, nil
	case isFeedback(name) && (r.begun > 0 || r.has(metadata) || r.has(policy)):
		return 0, errFollows
	}
	found, capital, ok := parent.find(name)
	if !ok {
		if found, capital, ok = r.recover(name); !ok {
			return r.enterUnknown(parent), nil
		}
	}
	r.quirks.NoteIf(capital, ElementCase)
	r.quirks.NoteIf(found.alias, ElementAlias)
	r.quirks.NoteIf(r.stack.top() == wrapper, StrayWrapper)
	if r.has(found.node) && !found.many {
		r.quirks.Note(ElementRepeated)
		return ignored, nil
	}
	r.seen |= 1 << found.node
	return found.node, nil
}

// enterOutside searches the report, which other elements may enclose.
func (r *Reader) enterOutside(name []byte) (node, error) {
	if r.isHTML(name) {
		return 0, reject(RejectedHTML, "the content is a web page")
	}
	if r.stack.rootName == "" {
		r.stack.rootName = string(name)
	}
	if !isFeedback(name) {
		return outside, nil
	}
	r.quirks.NoteIf(!r.stack.declared, DeclarationMissing)
	r.quirks.NoteIf(string(name) != "feedback", ElementCase)
	r.quirks.NoteIf(len(r.stack.open) > 0, StrayWrapper)
	r.readNamespace()
	r.root = len(r.stack.open)
	r.seen |= 1 << feedback
	return feedback, nil
}

// readNamespace determines the namespace of the root element.
func (r *Reader) readNamespace() {
	r.namespace, _ = r.stack.namespace(r.lex.prefix, r.lex.attributes)
	value := attribute(r.lex.attributes, declarationOf(r.lex.prefix))
	r.report.Namespace = string(bytes.TrimSpace(r.appendText(nil, value, false)))
	switch r.report.Namespace {
	case "", namespaceRFC7489, namespaceRFC9990:
	case namespaceDraft:
		r.quirks.Note(NamespaceDraft)
	default:
		r.quirks.Note(NamespaceUnknown)
	}
}

// recover finds the open element that may contain an element which the innermost one may
// not, and closes everything inside of it. A value was left open if a sibling follows.
func (r *Reader) recover(name []byte) (found element, capital, ok bool) {
	value := r.stack.top().isValue()
	for i := len(r.stack.open) - 2; i >= 0; i-- {
		n := r.stack.open[i].node
		found, capital, ok = n.find(name)
		if ok && (found.node.isLandmark() || value) {
			r.quirks.Note(MismatchedTags)
			r.stack.cut(i+1, r.dropped)
			return found, capital, true
		}
		if n == feedback || n == wrapper {
			break // outer elements have no other landmarks
		}
		value = false
	}
	return element{}, false, false
}

// enterUnknown enters an unknown element. With an undeclared prefix it may be an
// extension of a record.
func (r *Reader) enterUnknown(parent node) node {
	switch {
	case parent.isValue():
		r.quirks.Note(MarkupInText)
	case parent != record || len(r.lex.prefix) == 0:
		r.quirks.Note(ElementUnknown)
	}
	if parent == feedback || parent == wrapper {
		return wrapper
	}
	return ignored
}

// end handles an end tag. It closes the element and any open ones inside of it.
func (r *Reader) end() {
	i := r.stack.named(r.lex.name)
	switch last := len(r.stack.open) - 1; {
	case i >= 0 && i == last:
	case i >= 0:
		r.quirks.Note(MismatchedTags)
		r.stack.cut(i+1, r.dropped)
	case last < 0:
		return
	default:
		// A misspelled tag closes a value or unknown element. For other elements the tag
		// is more likely a stray one.
		r.quirks.Note(MismatchedTags)
		if top := r.stack.top(); !top.isValue() && top != ignored {
			return
		}
	}
	r.closed(r.stack.pop())
}

// dropped closes an element without an end tag, which makes a record incomplete.
func (r *Reader) dropped(n node) {
	if n == record {
		r.quirks.Note(RecordIncomplete)
		return
	}
	r.closed(n)
}

// cutOff closes an element of a truncated document, whose content may be incomplete.
func (r *Reader) cutOff(n node) {
	r.quirks.NoteIf(n == record, RecordIncomplete)
	r.seen &^= 1 << n &^ (1 << feedback)
}
