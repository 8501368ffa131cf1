package aggregate

import "bytes"

// stack holds the open elements.
type stack struct {
	open []openElement
	// bindings are the namespaces that open elements declare, outermost first.
	bindings []binding
	// names holds the local names of the open elements one behind the other.
	names []byte
	// rootName is the name of the first element, "" before it.
	rootName string
	declared bool // there was an XML declaration

	// innermost is the index of the innermost open element of each name, in lower
	// case, among the first indexed elements. It is built where an end tag does not
	// match the innermost element, so that well-formed documents do without it.
	innermost map[string]int
	indexed   int
	lower     []byte // scratch space for a name in lower case
}

// openElement is one element that is not yet closed.
type openElement struct {
	node node
	// name is where its local name begins in stack.names.
	name int
	// bindings is how many namespaces are declared around it.
	bindings int
	// outer is the index of the next element outwards of the same name, -1 if there
	// is none. It is set once the element is indexed.
	outer int
}

// top returns the innermost open element, outside where there is none.
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

// cut closes all elements but the outer ones, and calls closed for each.
func (s *stack) cut(outer int, closed func(node)) {
	for len(s.open) > outer {
		closed(s.pop())
	}
}

// named returns the index of the innermost open element of that name in any case,
// -1 if there is none. Its cost does not depend on the number of open elements.
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

// index adds the element at i to the index of names. All outer ones are in it.
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

// start opens the element of the start tag that was read.
func (r *Reader) start() error {
	if len(r.stack.open) >= r.limits.Depth {
		return refuse(RefusedLimit, "the elements are nested too deep")
	}
	n, err := r.place()
	if err != nil {
		return err
	}
	if n == record {
		if r.begun++; r.begun > r.limits.Records {
			return refuse(RefusedLimit, "the report has too many records")
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

// takeValue takes the whole text of a value at once. Most are short and stand for
// themselves.
func (r *Reader) takeValue(n node, text []byte) error {
	if len(text) <= r.limits.TextBytes && allPlain(text) {
		r.set(n, r.text(n, text))
		return nil
	}
	err := r.addText(text, false)
	r.closed(n)
	return err
}

// place tells which node the start tag stands for, and closes elements that it
// shows to be unclosed.
func (r *Reader) place() (node, error) {
	name, parent := r.lex.name, r.stack.top()
	switch parent {
	case outside:
		return r.placeOutside(name)
	case ignored, extension:
		return ignored, nil
	}
	switch {
	case r.isForeign():
		// RFC 9990 allows elements of other namespaces in a record.
		r.quirks.noteIf(parent != record, ElementForeign)
		return ignored, nil
	case isFeedback(name) && (r.begun > 0 || r.has(metadata) || r.has(policy)):
		return 0, errFollows
	}
	found, capital, ok := parent.find(name)
	if !ok {
		if found, capital, ok = r.recover(name); !ok {
			return r.placeUnknown(parent), nil
		}
	}
	r.quirks.noteIf(capital, ElementCase)
	r.quirks.noteIf(found.alias, ElementAlias)
	r.quirks.noteIf(r.stack.top() == wrapper, StrayWrapper)
	if r.has(found.node) && !found.many {
		r.quirks.note(ElementRepeated)
		return ignored, nil
	}
	r.seen |= 1 << found.node
	return found.node, nil
}

// placeOutside looks for the report itself, which may be enclosed in elements
// that are none of it.
func (r *Reader) placeOutside(name []byte) (node, error) {
	if r.isHTML(name) {
		return 0, refuse(RefusedHTML, "the content is a web page")
	}
	if r.stack.rootName == "" {
		r.stack.rootName = string(name)
	}
	if !isFeedback(name) {
		return outside, nil
	}
	r.quirks.noteIf(!r.stack.declared, DeclarationMissing)
	r.quirks.noteIf(string(name) != "feedback", ElementCase)
	r.quirks.noteIf(len(r.stack.open) > 0, StrayWrapper)
	r.readNamespace()
	r.root = len(r.stack.open)
	r.seen |= 1 << feedback
	return feedback, nil
}

// readNamespace finds the namespace of the root element.
func (r *Reader) readNamespace() {
	r.home, _ = r.stack.namespace(r.lex.prefix, r.lex.attributes)
	value := attribute(r.lex.attributes, declarationOf(r.lex.prefix))
	r.report.Namespace = string(bytes.TrimSpace(r.appendText(nil, value, false)))
	switch r.report.Namespace {
	case "", namespaceRFC7489, namespaceRFC9990:
	case namespaceDraft:
		r.quirks.note(NamespaceDraft)
	default:
		r.quirks.note(NamespaceUnknown)
	}
}

// recover finds the open element in which an element has its place that has none
// in the innermost one, and closes what is in between. A value was not closed
// where an element follows that belongs beside it.
func (r *Reader) recover(name []byte) (found element, capital, ok bool) {
	value := r.stack.top().isValue()
	for i := len(r.stack.open) - 2; i >= 0; i-- {
		n := r.stack.open[i].node
		if n == ignored || n == extension || n == outside {
			break
		}
		found, capital, ok = n.find(name)
		if ok && (found.node.isLandmark() || value) {
			r.quirks.note(MismatchedTags)
			r.stack.cut(i+1, r.dropped)
			return found, capital, true
		}
		if n == feedback || n == wrapper {
			break // what is around it has no other landmarks
		}
		value = false
	}
	return element{}, false, false
}

// placeUnknown places an element that no specification has there. One with a prefix
// that is not declared may be an extension of a record.
func (r *Reader) placeUnknown(parent node) node {
	switch {
	case parent.isValue():
		r.quirks.note(MarkupInText)
	case parent != record || len(r.lex.prefix) == 0:
		r.quirks.note(ElementUnknown)
	}
	if parent == feedback || parent == wrapper {
		return wrapper
	}
	return ignored
}

// end closes the element of the end tag that was read, and the ones within it
// that were not closed.
func (r *Reader) end() {
	i := r.stack.named(r.lex.name)
	switch last := len(r.stack.open) - 1; {
	case i >= 0 && i == last:
	case i >= 0:
		r.quirks.note(MismatchedTags)
		r.stack.cut(i+1, r.dropped)
	case last < 0:
		return
	default:
		// A value or unknown element was closed by a misspelt tag. For any other
		// element the tag is more likely a stray one.
		r.quirks.note(MismatchedTags)
		if top := r.stack.top(); !top.isValue() && top != ignored {
			return
		}
	}
	r.closed(r.stack.pop())
}

// dropped ends an element without its end tag. A record is incomplete then.
func (r *Reader) dropped(n node) {
	if n == record {
		r.quirks.note(RecordIncomplete)
		return
	}
	r.closed(n)
}

// cutOff ends an element at the end of a document that was cut off. What is in it
// may be the beginning of something else.
func (r *Reader) cutOff(n node) {
	r.quirks.noteIf(n == record, RecordIncomplete)
	r.seen &^= 1 << n &^ (1 << feedback)
}
