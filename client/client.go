// Package client calls the API of dmarcd. Each method is named after its operation in the OpenAPI
// document, lists are iterators over all pages, and an answer that reports an error is an *Error.
// Begin with New; the examples show each use.
//
// Requests are retried where that is safe. A POST is retried only if no connection could be opened,
// or if the server answered 429. The client validates nothing: the server does.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

// Client calls the API with a token. It is safe for concurrent use; its fields must not be changed
// after the first call.
type Client struct {
	// HTTP sends the requests.
	HTTP *http.Client
	// UserAgent names the program in the logs of the server.
	UserAgent string
	// Retries is the maximum number of retries of a request.
	Retries int
	// MaxWait is the longest wait before a retry. If the server asks for a longer one, the request
	// fails with the error of the server.
	MaxWait time.Duration

	base, token string
}

// The defaults of a Client.
const (
	defaultRetries = 4
	defaultMaxWait = time.Minute
	// answerTimeout limits the wait for the header of a response. Some operations query the DNS or
	// wait for events first.
	answerTimeout = 3 * time.Minute
	firstWait     = 500 * time.Millisecond
)

// New returns a client of the API at a base URL, such as https://dmarc.example.com/api. The context
// of a call limits its time, including retries.
func New(baseURL, token string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it has this type
	transport.ResponseHeaderTimeout = answerTimeout
	return &Client{
		HTTP: &http.Client{Transport: transport}, UserAgent: "dmarcd-client", Retries: defaultRetries, MaxWait: defaultMaxWait,
		base: strings.TrimRight(baseURL, "/"), token: token,
	}
}

// call is one request.
type call struct {
	method string
	path   []string // its segments, not escaped
	filter any      // a struct with the parameters, see values
	query  url.Values
	body   any // sent as JSON; a reader is sent as it is, once
}

// send sends a request, retries it where that is safe, and returns a successful response. The caller
// closes its body.
func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	address, err := c.address(r)
	if err != nil {
		return nil, err
	}
	stream, once := r.body.(io.Reader)
	var encoded []byte
	if r.body != nil && !once {
		if encoded, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	lost := false // an earlier attempt may have reached the server
	for attempt := 0; ; attempt++ {
		body := stream
		if !once {
			body = bytes.NewReader(encoded)
		}
		request, err := http.NewRequestWithContext(ctx, r.method, address, body)
		if err != nil {
			return nil, fmt.Errorf("the base URL of the API is not valid: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+c.token)
		request.Header.Set("User-Agent", c.UserAgent)
		switch {
		case once:
			request.Header.Set("Content-Type", "application/octet-stream")
		case r.body != nil:
			request.Header.Set("Content-Type", "application/json")
		}
		response, err := c.HTTP.Do(request)
		if err == nil && response.StatusCode < http.StatusMultipleChoices {
			return response, nil
		}
		if err == nil {
			err = readError(response)
			if lost && r.method == http.MethodDelete && errors.Is(err, dmarcd.ErrNotFound) {
				return response, nil // the earlier attempt deleted it
			}
		}
		wait, again := c.wait(r.method, attempt, err)
		if !again || once || ctx.Err() != nil {
			return nil, err
		}
		lost = lost || !errors.As(err, new(*Error))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// address returns the URL of a request. An empty segment or a dot would name another resource.
func (c *Client) address(r call) (string, error) {
	address := c.base
	for _, segment := range r.path {
		if segment == "" || segment == "." || segment == ".." {
			return "", &dmarcd.InvalidError{Message: "A name or an id is missing."}
		}
		address += "/" + url.PathEscape(segment)
	}
	query := r.query
	if query == nil {
		query = values(r.filter)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address, nil
}

// wait returns how long to wait before the next attempt, and whether there is one.
func (c *Client) wait(method string, attempt int, err error) (time.Duration, bool) {
	if attempt >= c.Retries {
		return 0, false
	}
	backoff := firstWait << min(attempt, 16) * time.Duration(50+rand.IntN(50)) / 100 //nolint:gosec // spreads load
	wait := min(backoff, c.MaxWait)
	var answer *Error
	if !errors.As(err, &answer) {
		var dial *net.OpError
		return wait, method != http.MethodPost || errors.As(err, &dial) && dial.Op == "dial"
	}
	temporary := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if method == http.MethodPost { // after any other status something may have changed
		temporary = temporary[:1]
	}
	if answer.RetryAfter > 0 {
		wait = answer.RetryAfter
	}
	return wait, slices.Contains(temporary, answer.Status) && wait <= c.MaxWait
}

// do sends a request and decodes the response.
func do[T any](ctx context.Context, c *Client, r call) (result T, err error) {
	_, err = c.decode(ctx, r, &result)
	return result, err
}

// decode is do for callers that need the header of the response.
func (c *Client) decode(ctx context.Context, r call, result any) (http.Header, error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // read to the end
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		return nil, fmt.Errorf("read the answer of the server: %w", err)
	}
	return response.Header, nil
}

// remove deletes a resource.
func (c *Client) remove(ctx context.Context, path ...string) error {
	response, err := c.send(ctx, call{method: http.MethodDelete, path: path})
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func get[T any](ctx context.Context, c *Client, path ...string) (T, error) {
	return do[T](ctx, c, call{method: http.MethodGet, path: path})
}

func put[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	return do[T](ctx, c, call{method: http.MethodPut, path: path, body: body})
}

func patch[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	return do[T](ctx, c, call{method: http.MethodPatch, path: path, body: body})
}

func post[T any](ctx context.Context, c *Client, body any, path ...string) (T, error) {
	return do[T](ctx, c, call{method: http.MethodPost, path: path, body: body})
}

// values returns the fields of a filter as query parameters, named by their tags. Zero values are
// omitted.
func values(filter any) url.Values {
	query := url.Values{}
	if filter == nil {
		return query
	}
	for field, value := range reflect.ValueOf(filter).Fields() {
		switch {
		case field.Anonymous:
			for name, list := range values(value.Interface()) {
				query[name] = list
			}
		case !value.IsZero():
			query.Set(field.Tag.Get("query"), fmt.Sprint(value.Interface()))
		}
	}
	return query
}

// retryAfter parses the header Retry-After, which is a number of seconds or a time.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, time.Until(at))
}
