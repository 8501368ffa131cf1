package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
)

// keyHeader makes a POST repeatable: the answer to the first request with a key is stored, and sent
// again to the others. A request that fails stores nothing, and is handled again.
const keyHeader = "Idempotency-Key"

const (
	maxKey = 255
	// maxStoredAnswer is the largest body that is stored. If it is larger, only that the request
	// was answered is.
	maxStoredAnswer = 16 << 10
	// saveTime limits storing an answer, which a client that disconnects must not prevent.
	saveTime = 10 * time.Second
)

// storedHeaders are those of an answer that are stored with it.
var storedHeaders = []string{"Content-Type", "Location", "Dmarcd-Check"}

// storedAnswer is the encoding of an answer.
type storedAnswer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   []byte            `json:"body"`
}

// once handles a request; with an idempotency key only if none with the same key was answered.
func (a *API) once(c *call) error {
	keys := c.r.Header.Values(keyHeader)
	if !c.route.repeatable || len(keys) == 0 {
		return c.route.handle(c)
	}
	key := keys[0]
	if len(keys) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return &dmarcd.InvalidError{Field: keyHeader, Message: "The header Idempotency-Key must be one text of 1 to 255 printable ASCII characters, such as a UUID."}
	}
	claim, known, err := c.service.ClaimKey(c.r.Context(), key)
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		return errKeyInUse
	case err != nil:
		return err
	}
	// With the key, whose hash alone is stored, an attacker cannot guess a password in a body.
	request := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(request, c.route.method+" "+c.r.URL.RequestURI()+"\n") // never fails
	if known != nil {
		return a.repeat(c, request, known)
	}
	saved := false
	ending := func(end func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), saveTime)
		defer cancel()
		if err := end(ctx); err != nil {
			a.options.Log.WarnContext(ctx, "idempotency key not saved", "error", err, "team", c.teamID)
		}
	}
	defer func() {
		if !saved {
			ending(func(ctx context.Context) error { return c.service.ReleaseKey(ctx, claim) })
		}
	}()
	writer := c.w
	answer := &buffered{ResponseWriter: writer}
	body := hashing{io.TeeReader(c.r.Body, request), c.r.Body}
	c.w, c.r.Body = answer, body
	err = c.route.handle(c)
	c.w = writer
	if err != nil {
		return err
	}
	if answer.status < http.StatusMultipleChoices {
		if c.route.readsBody {
			// What follows the last part of a form belongs to the hash. Writers in tests have no deadlines.
			_ = http.NewResponseController(writer).SetReadDeadline(time.Now().Add(saveTime))
			_, _ = io.Copy(io.Discard, io.LimitReader(body, maxBody))
		}
		ending(func(ctx context.Context) error {
			return c.service.SaveAnswer(ctx, claim, service.StoredAnswer{Request: [32]byte(request.Sum(nil)), Answer: answer.encode()})
		})
		saved = true
	}
	writer.WriteHeader(answer.status)
	_, _ = writer.Write(answer.body.Bytes()) // the client has disconnected
	return nil
}

// repeat answers a request like an earlier one with the same key and body.
func (a *API) repeat(c *call, request hash.Hash, known *service.StoredAnswer) error {
	if c.route.readsBody {
		body := a.options.Uploads.Body(c.w, c.r, c.teamID)
		defer body.Close()
		_, err := io.Copy(request, http.MaxBytesReader(c.w, io.NopCloser(body), max(a.options.MaxUpload, maxBulkBody)))
		a.beginAnswer(c.w)
		if errors.As(err, new(*http.MaxBytesError)) {
			return errKeyReused
		}
		if err != nil {
			return bodyError(err, a.options.MaxUpload)
		}
	}
	if [32]byte(request.Sum(nil)) != known.Request {
		return errKeyReused
	}
	if len(known.Answer) == 0 {
		return errAnswerNotStored
	}
	var answer storedAnswer
	if err := json.Unmarshal(known.Answer, &answer); err != nil {
		return err
	}
	for name, value := range answer.Header {
		c.w.Header().Set(name, value)
	}
	writeBody(c.w, answer.Status, answer.Header["Content-Type"], answer.Body)
	return nil
}

// buffered keeps an answer until it is stored.
type buffered struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
}

func (b *buffered) WriteHeader(status int) { b.status = status }

func (b *buffered) Write(p []byte) (int, error) {
	if b.status == 0 {
		b.status = http.StatusOK
	}
	return b.body.Write(p)
}

// Unwrap is for http.ResponseController.
func (b *buffered) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// encode returns the answer to store, nil if it is too large.
func (b *buffered) encode() []byte {
	if b.body.Len() > maxStoredAnswer {
		return nil
	}
	answer := storedAnswer{Status: b.status, Header: map[string]string{}, Body: b.body.Bytes()}
	for _, name := range storedHeaders {
		if value := b.Header().Get(name); value != "" {
			answer.Header[name] = value
		}
	}
	return encode(answer)
}

// hashing is a body that is hashed while it is read.
type hashing struct {
	io.Reader
	io.Closer
}
