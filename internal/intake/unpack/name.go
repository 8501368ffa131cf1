package unpack

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 255  // of one name in a path, in bytes
	maxPath  = 1024 // of a path, in bytes
	maxField = 998  // of a header field shown to users, in bytes (RFC 5322 §2.1.1)
)

// joinPath appends an untrusted name to a path. It removes path traversal and control
// characters.
func joinPath(parent, name string) string {
	name = clean(strings.ReplaceAll(name, `\`, "/"))
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	name = distinct(name, maxName)
	switch {
	case name == "":
		return parent
	case parent == "":
		return name
	default:
		return distinct(parent+"/"+name, maxPath)
	}
}

// decoded returns a header field as readable text.
func decoded(field string) string {
	if text, err := new(mime.WordDecoder).DecodeHeader(field); err == nil {
		field = text
	}
	return shorten(strings.TrimSpace(clean(field)), maxField)
}

// clean removes unprintable characters and replaces invalid UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}

// distinct truncates a long path. It ends with a hash then: the path identifies a rejected item.
func distinct(path string, maxBytes int) string {
	if len(path) <= maxBytes {
		return path
	}
	hash := sha256.Sum256([]byte(path))
	end := "~" + hex.EncodeToString(hash[:8])
	return shorten(path, maxBytes-len(end)) + end
}

// shorten truncates valid UTF-8 to a number of bytes, between runes.
func shorten(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	for !utf8.RuneStart(s[maxBytes]) {
		maxBytes--
	}
	return s[:maxBytes]
}
