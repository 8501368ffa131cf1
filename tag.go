package dmarcd

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxTags is how many tags a domain may have, MaxTeamTags how many different ones a team.
	MaxTags     = 20
	MaxTeamTags = 1000
	// maxTag is how many characters a tag may have.
	maxTag = 40
)

// ParseTag returns a tag in its canonical form: lower case, without spaces around it. A tag
// consists of letters, digits, hyphens, underscores and dots; anything else is an
// InvalidError.
func ParseTag(s string) (string, error) {
	tag := strings.ToLower(strings.TrimSpace(s))
	allowed := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) }
	switch {
	case tag == "" || !utf8.ValidString(tag) || strings.ContainsFunc(tag, func(r rune) bool { return !allowed(r) }):
		return "", &InvalidError{Field: "tags", Message: "A tag consists of letters, digits, hyphens, underscores and dots."}
	case utf8.RuneCountInString(tag) > maxTag:
		return "", &InvalidError{Field: "tags", Message: fmt.Sprintf("A tag has at most %d characters.", maxTag)}
	}
	return tag, nil
}

// ParseTags returns tags in their canonical form, in order and each once. It is an
// InvalidError if one of them is not a tag or there are more than MaxTags.
func ParseTags(list []string) ([]string, error) {
	tags := make([]string, len(list))
	for i, s := range list {
		var err error
		if tags[i], err = ParseTag(s); err != nil {
			return nil, err
		}
	}
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) > MaxTags {
		return nil, &InvalidError{Field: "tags", Message: fmt.Sprintf("A domain has at most %d tags.", MaxTags)}
	}
	return tags, nil
}

// TagCount is a tag and how many domains of the team have it.
type TagCount struct {
	Tag     string
	Domains int
}
