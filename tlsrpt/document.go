package tlsrpt

// document reads the values of a JSON document. Each method is called with the first
// token of the value and reads the rest.
type document struct {
	lex    *lexer
	limits Limits
	quirks *tally
	depth  int // open objects and lists
	bytes  int // total bytes of the texts
	known  int // number of RFC 8460 members found
}

// memberValue reads the colon after a name and the first token of the value.
func (d *document) memberValue() (token, error) {
	colon, err := d.lex.next()
	if err != nil {
		return 0, err
	}
	if colon != ':' {
		return 0, errMalformed
	}
	return d.lex.next()
}

// list reads a list, or a single value instead of one. It calls item with the first token
// of each value.
func (d *document) list(tok token, single Quirk, item func(tok token) error) error {
	switch tok {
	case '[':
		return d.elements(']', item)
	case tokenWord:
		return d.unusable(tok)
	default:
		d.quirks.Note(single)
		return item(tok)
	}
}

// elements reads the content of an object or a list up to end.
func (d *document) elements(end token, element func(tok token) error) error {
	if d.depth++; d.depth > d.limits.Depth {
		return reject(RejectedLimit, "objects and lists are nested too deeply")
	}
	separated := true // there was a comma or the opening bracket
	for first := true; ; first = false {
		tok, err := d.lex.next()
		switch {
		case err != nil:
			return err
		case tok == end:
			d.quirks.NoteIf(separated && !first, StrayComma)
			d.depth--
			return nil
		case tok == ',':
			d.quirks.NoteIf(separated, StrayComma)
			separated = true
			continue
		case !separated:
			return errMalformed
		}
		if err := element(tok); err != nil {
			return err
		}
		separated = false
	}
}

// isScalar reports whether the token is a scalar other than null.
func (d *document) isScalar(tok token) bool {
	return tok == tokenText || tok == tokenWord && string(d.lex.text) != "null"
}

// unusable skips a value of the wrong type.
func (d *document) unusable(tok token) error {
	if tok == tokenWord && string(d.lex.text) == "null" {
		d.quirks.Note(NullValue)
		return nil
	}
	if err := d.skip(tok); err != nil {
		return err
	}
	d.quirks.Note(ValueUnusable)
	return nil
}

// skip skips any value.
func (d *document) skip(tok token) error {
	switch tok {
	case tokenText, tokenWord:
		return nil
	case '[':
		return d.elements(']', d.skip)
	case '{':
		return d.elements('}', func(tok token) error {
			if tok != tokenText {
				return errMalformed
			}
			value, err := d.memberValue()
			if err != nil {
				return err
			}
			return d.skip(value)
		})
	default:
		return errMalformed
	}
}
