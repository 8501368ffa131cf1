package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd"
)

// maxBody is the size limit of a JSON body.
const maxBody = 64 << 10

// readObject returns the members of the JSON object in the body; the last of a repeated member
// counts. Its errors name the expected member and show an example.
func readObject(c *call, member, example string) (map[string]json.RawMessage, error) {
	// Ignore invalid parameters: JSON has none.
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || media != "application/json" ||
		c.r.Header.Get("Content-Encoding") != "" {
		return nil, errMediaType
	}
	if c.r.ContentLength > maxBody {
		return nil, errBodyTooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errBodyTooLarge
	case err != nil, !utf8.Valid(body), !json.Valid(body):
		return nil, &failure{http.StatusBadRequest, "invalid_json", "The body must be one JSON object in UTF-8, such as " + example + "."}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, &dmarcd.InvalidError{Field: member, Message: `The body must be a JSON object with the member "` + member + `".`}
	}
	return members, nil
}

// stringMember returns a member that must be a string.
func stringMember(members map[string]json.RawMessage, name string) (string, error) {
	var value *string
	if err := json.Unmarshal(members[name], &value); err != nil || value == nil {
		return "", &dmarcd.InvalidError{Field: name, Message: `The member "` + name + `" is required and must be a string.`}
	}
	return *value, nil
}
