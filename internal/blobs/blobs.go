// Package blobs stores objects in a bucket of an S3-compatible server: it puts, gets and deletes
// them by path-style requests, signed with Signature Version 4. It lists nothing and creates no
// bucket; who refers to which object is up to the caller.
package blobs

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
)

const (
	// attempts is how often a request is sent that fails temporarily, pause the time after the
	// first; it doubles.
	attempts = 3
	pause    = 200 * time.Millisecond
	// timeout bounds one attempt.
	timeout = 30 * time.Second
	// maxError limits what is read of an error document.
	maxError = 64 << 10
)

// Bucket is a bucket, or the part of one below a prefix. It is safe for concurrent use.
type Bucket struct {
	base              *url.URL // with the bucket and the prefix, without a slash at the end
	key, secret, zone string
	client            *http.Client
	now               func() time.Time
}

// Open returns the bucket with a URL, without connecting to it:
//
//	https://KEY:SECRET@HOST[:PORT]/BUCKET[/PREFIX][?region=REGION]
//
// The region is us-east-1 by default. now is the clock; nil is time.Now.
func Open(text string, now func() time.Time) (*Bucket, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errBadURL // the text may have the secret
	}
	secret, hasSecret := u.User.Password()
	query, err := url.ParseQuery(u.RawQuery)
	path := strings.Trim(u.Path, "/")
	zone := query.Get("region")
	query.Del("region")
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User.Username() == "", !hasSecret, secret == "",
		path == "", strings.Contains(path, "//"), escape(path) != path, len(query) > 0, u.Fragment != "":
		return nil, errBadURL
	case zone == "":
		zone = "us-east-1"
	case escape(zone) != zone:
		return nil, errBadURL
	}
	if now == nil {
		now = time.Now
	}
	return &Bucket{
		base: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + path}, key: u.User.Username(), secret: secret, zone: zone, now: now,
		client: &http.Client{
			Timeout:       timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a signature is for one host
		},
	}, nil
}

var errBadURL = errors.New("must be https://KEY:SECRET@HOST/BUCKET, with /PREFIX and ?region=REGION where needed")

// Put stores an object, in place of one with the same name.
func (b *Bucket) Put(ctx context.Context, name string, data []byte) error {
	_, err := b.send(ctx, http.MethodPut, name, data, 0)
	return err
}

// Get returns an object of up to limit bytes; a longer one is an error. One that does not exist
// is dmarcd.ErrNotFound.
func (b *Bucket) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	return b.send(ctx, http.MethodGet, name, nil, limit)
}

// Delete removes an object. That there is none is not an error.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	_, err := b.send(ctx, http.MethodDelete, name, nil, 0)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return nil
	}
	return err
}

// send sends a request, again after temporary errors, and returns the body of a response of up
// to limit bytes.
func (b *Bucket) send(ctx context.Context, method, name string, data []byte, limit int64) (body []byte, err error) {
	if name == "" || escape(name) != name {
		return nil, fmt.Errorf("%q is not the name of an object", name)
	}
	wait := pause
	for attempt := 1; ; attempt++ {
		body, err = b.sendOnce(ctx, method, name, data, limit)
		if !errors.Is(err, dmarcd.ErrTemporary) || attempt == attempts {
			return body, err
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (b *Bucket) sendOnce(ctx context.Context, method, name string, data []byte, limit int64) ([]byte, error) {
	target := *b.base
	target.Path += "/" + name
	r, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	b.sign(r, data)
	response, err := b.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: the bucket does not answer (DMARCD_BLOBS): %w", dmarcd.ErrTemporary, err)
	}
	defer func() { _ = response.Body.Close() }() // read-only
	if response.StatusCode/100 != 2 {
		return nil, b.failure(method, name, response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read %s from the bucket: %w", dmarcd.ErrTemporary, name, err)
	}
	if method == http.MethodGet && int64(len(body)) > limit {
		return nil, fmt.Errorf("the object %s of the bucket is longer than %d bytes", name, limit)
	}
	return body, nil
}

// failure returns the error of a response.
func (b *Bucket) failure(method, name string, response *http.Response) error {
	var document struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	_ = xml.NewDecoder(io.LimitReader(response.Body, maxError)).Decode(&document) // the status tells enough
	err := fmt.Errorf("%s %s: the bucket answers %d %s %s", method, name, response.StatusCode, document.Code, document.Message)
	switch status := response.StatusCode; {
	case document.Code == "NoSuchBucket":
		return fmt.Errorf("%w; create the bucket, or correct its name in DMARCD_BLOBS", err)
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: %w", dmarcd.ErrNotFound, err)
	case status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("%w: %w", dmarcd.ErrTemporary, err)
	case status == http.StatusForbidden, status == http.StatusUnauthorized, status/100 == 3, status == http.StatusBadRequest:
		return fmt.Errorf("%w; check the host, the key, the secret and the region in DMARCD_BLOBS, and the clock of this machine", err)
	}
	return err
}

// sign adds the headers of Signature Version 4 to a request without a query.
func (b *Bucket) sign(r *http.Request, data []byte) {
	now := b.now().UTC()
	stamp, day := now.Format("20060102T150405Z"), now.Format("20060102")
	sum := hexSum(data)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", sum)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), "",
		"host:" + r.URL.Host, "x-amz-content-sha256:" + sum, "x-amz-date:" + stamp, "",
		signed, sum,
	}, "\n")
	scope := day + "/" + b.zone + "/s3/aws4_request"
	text := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hexSum([]byte(canonical))}, "\n")
	key := []byte("AWS4" + b.secret)
	for _, part := range []string{day, b.zone, "s3", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part)) // never fails
		key = mac.Sum(nil)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x", b.key, scope, signed, key))
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// escape replaces characters that would have to be escaped in a signed path: names and prefixes
// have none of them.
func escape(path string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.~/", c) {
			return c
		}
		return -1
	}, path)
}
