package unpack

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 255  // bytes of one name in a path
	maxPath  = 1024 // bytes of a whole path
	maxField = 998  // bytes of a header field for people, RFC 5322 §2.1.1
)

// joinPath adds a name to a path of names. The name is not trusted: it loses
// what would lead out of a folder, and what a terminal or a page would obey.
func joinPath(parent, name string) string {
	name = clean(strings.ReplaceAll(name, `\`, "/"))
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	name = shorten(name, maxName)
	switch {
	case name == "":
		return parent
	case parent == "":
		return name
	default:
		return shorten(parent+"/"+name, maxPath)
	}
}

// decoded returns a header field as people read it.
func decoded(field string) string {
	if text, err := new(mime.WordDecoder).DecodeHeader(field); err == nil {
		field = text
	}
	return shorten(strings.TrimSpace(clean(field)), maxField)
}

// clean drops everything that does not print, and replaces bytes that are not
// UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// shorten cuts a text to a number of bytes, between runes.
func shorten(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for maxBytes > 0 && !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}
