package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// encode returns v as JSON with a line end, and leaves < > & as they are: a
// DMARC record is to be read by people too.
func encode(v any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // our own shapes can be encoded
	}
	return body.Bytes()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, encode(v))
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left cannot be told
}

// slowAnswers is how many times as long as others an answer may take that is written in
// parts.
const slowAnswers = 5

// partDeadline returns what tells the deadline for the next part of an answer: each may
// take as long as a whole one, and all together a few times that.
func (a *API) partDeadline() func() time.Time {
	end := time.Now().Add(slowAnswers * a.options.WriteTimeout)
	return func() time.Time {
		if next := time.Now().Add(a.options.WriteTimeout); next.Before(end) {
			return next
		}
		return end
	}
}

// writeCacheable answers a GET with 200, or with 304 where the client has the
// same already.
func writeCacheable(c *call, v any) {
	body := encode(v)
	sum := sha256.Sum256(body)
	// Weak: what lies between may compress it.
	tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	header := c.w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, no-cache") // may be kept, must be asked about
	if hasTag(c.r.Header.Values("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return
	}
	writeBody(c.w, http.StatusOK, body)
}

// hasTag compares weakly, as RFC 9110 §13.1.2 asks of If-None-Match.
func hasTag(conditions []string, tag string) bool {
	for _, condition := range conditions {
		for candidate := range strings.SplitSeq(condition, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
