package tlsrpt

import "slices"

// document reads the values of a JSON document. Each method is given the first token
// of its value and reads the rest of it.
type document struct {
	lex    *lexer
	limits Limits
	quirks *tally
	depth  int // objects and lists that are open
	kept   int // bytes of the texts that were kept
	known  int // members of RFC 8460 that were met
}

// members are those that an object has, as bits in the order of their table.
type members uint

// has reports whether the member of the table is there.
func (m members) has(table []string, member string) bool {
	return m&(1<<slices.Index(table, member)) != 0
}

// object reads an object. It calls set for each member of the table with the first
// token of its value, and returns which there are, also those before an error.
func (d *document) object(tok token, table []string, set func(member string, tok token) error) (members, error) {
	if tok != '{' {
		return 0, d.unusable(tok)
	}
	var seen members
	err := d.elements('}', func(tok token) error {
		if tok != tokenText {
			return errMalformed
		}
		i := d.quirks.findMember(string(d.lex.text), table)
		value, err := d.memberValue()
		if err != nil {
			return err
		}
		if i < 0 {
			return d.skip(value)
		}
		d.known++
		d.quirks.noteIf(seen&(1<<i) != 0, MemberRepeated)
		seen |= 1 << i
		return set(table[i], value)
	})
	return seen, err
}

// memberValue reads the colon behind a name, and the first token of the value.
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

// list reads a list, or a single value in the place of one. It calls item with the
// first token of each value.
func (d *document) list(tok token, single Quirk, item func(tok token) error) error {
	switch tok {
	case '[':
		return d.elements(']', item)
	case tokenWord:
		return d.unusable(tok)
	default:
		d.quirks.note(single)
		return item(tok)
	}
}

// elements reads what an object or a list has between its brackets, up to end.
func (d *document) elements(end token, element func(tok token) error) error {
	if d.depth++; d.depth > d.limits.Depth {
		return refuse(RefusedLimit, "objects and lists are nested too deeply")
	}
	separated := true // by a comma, or by the bracket, from what came before
	for first := true; ; first = false {
		tok, err := d.lex.next()
		switch {
		case err != nil:
			return err
		case tok == end:
			d.quirks.noteIf(separated && !first, StrayComma)
			d.depth--
			return nil
		case tok == ',':
			d.quirks.noteIf(separated, StrayComma)
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

// isScalar reports whether the token is a value of its own, and not null.
func (d *document) isScalar(tok token) bool {
	return tok == tokenText || tok == tokenWord && string(d.lex.text) != "null"
}

// unusable passes over a value of the wrong type.
func (d *document) unusable(tok token) error {
	if tok == tokenWord && string(d.lex.text) == "null" {
		d.quirks.note(NullValue)
		return nil
	}
	if err := d.skip(tok); err != nil {
		return err
	}
	d.quirks.note(ValueUnusable)
	return nil
}

// skip passes over a value, whatever it is.
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
