package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// encode returns v as a line of JSON without escaping < > &: users read DMARC records in it.
func encode(v any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // our own types can be encoded
	}
	return body.Bytes()
}

// writeJSON answers with v.
func (c *call) writeJSON(status int, v any) error {
	writeJSON(c.w, status, v)
	return nil
}

// whole returns the handler of a list that is read as a whole. Its items have the order of key, which
// is in its cursors.
func whole[A, B any](read func(*service.Team, context.Context) ([]A, error), shape func(A) B, key func(A) string) func(*call) error {
	return func(c *call) error {
		limit, text := c.query.part()
		_, after, err := wire.ParsePosition(text)
		if text != "" {
			c.query.fail("after", err)
		}
		if c.query.err != nil {
			return c.query.err
		}
		all, err := read(c.service, c.r.Context())
		if err != nil {
			return err
		}
		rest := slices.SortedFunc(slices.Values(all), func(a, b A) int { return strings.Compare(key(a), key(b)) })
		rest = slices.DeleteFunc(rest, func(a A) bool { return text != "" && key(a) <= after })
		return writePage(c, wire.NewPage(rest, limit, func(a A) string { return wire.FormatPosition(0, key(a)) }, shape))
	}
}

// deleted responds to a deletion; words is the error if the item does not exist.
func (c *call) deleted(err error, words *failure) error {
	if err != nil {
		return missing(err, words)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, "application/json", encode(v))
}

func writeBody(w http.ResponseWriter, status int, mediaType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has disconnected
}

// slowAnswers limits the duration of a response in parts, in write timeouts.
const slowAnswers = 5

// partDeadline returns a function for the deadline of the next part: each part gets the full
// timeout, all together slowAnswers times that.
func (a *API) partDeadline() func() time.Time {
	end := time.Now().Add(slowAnswers * a.options.WriteTimeout)
	return func() time.Time {
		if next := time.Now().Add(a.options.WriteTimeout); next.Before(end) {
			return next
		}
		return end
	}
}

// writeCacheable answers a GET with 200, or with 304 if the ETag matches.
func (c *call) writeCacheable(v any) error {
	return c.writeCacheableBody("application/json", encode(v))
}

// writeCacheableBody is writeCacheable for an encoded body.
func (c *call) writeCacheableBody(mediaType string, body []byte) error {
	sum := sha256.Sum256(body)
	c.encoded()
	// Weak, because proxies may compress it.
	tag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	header := c.w.Header()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, no-cache") // cache, but revalidate
	if hasTag(c.r.Header.Values("If-None-Match"), tag) {
		header.Del("Content-Disposition")
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeBody(c.w, http.StatusOK, mediaType, body)
	return nil
}

// encoded releases the slot of the request: from now on it only waits for the client.
func (c *call) encoded() {
	if c.endTurn != nil {
		c.endTurn()
	}
}

// hasTag compares weakly, as RFC 9110 §13.1.2 requires for If-None-Match.
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
