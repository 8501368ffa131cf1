package imap

import (
	"errors"
	"strings"
	"unicode"

	"github.com/emersion/go-imap/v2"
)

// maxWords limits the part of a server's message that is shown, in bytes.
const maxWords = 300

// rejected reports whether the server answered NO or BAD.
func rejected(err error) bool {
	var answer *imap.Error
	return errors.As(err, &answer)
}

// unavailable reports whether the server rejected a command temporarily (RFC 5530).
func unavailable(err error) bool {
	var answer *imap.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code {
	case imap.ResponseCodeUnavailable, imap.ResponseCodeInUse, imap.ResponseCodeLimit, imap.ResponseCodeServerBug:
		return true
	}
	return false
}

// readable returns an error whose text is safe to show: server messages may contain anything.
func readable(err error) error {
	words := err.Error()
	var answer *imap.Error
	if errors.As(err, &answer) {
		words = string(answer.Type) + " " + answer.Text
		if answer.Code != "" {
			words = string(answer.Type) + " [" + string(answer.Code) + "] " + answer.Text
		}
	}
	words = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, words)
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return &readableError{words: words, cause: err}
}

type readableError struct {
	words string
	cause error
}

func (e *readableError) Error() string { return e.words }

func (e *readableError) Unwrap() error { return e.cause }
