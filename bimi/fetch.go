package bimi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// ErrUnreachable is wrapped by the errors of a fetch that say nothing about the
// document: the server could not be reached, or broke off.
var ErrUnreachable = errors.New("server cannot be reached")

var (
	errInsecureRedirect = errors.New("redirect to a URI that is not HTTPS")
	errTooManyRedirects = errors.New("too many redirects")
)

// Document is what came back from the URI of a record.
type Document struct {
	// URI is where the document came from, after redirects.
	URI string
	// Status is the HTTP status, 0 where there was none.
	Status int
	// ContentType is the media type without parameters, "" where none was given.
	ContentType string
	// Content is the document, at most 1 MiB; nil where Problems tells why there
	// is none.
	Content []byte
	// Problems holds what is wrong.
	Problems []Problem
}

// FetchImage gets the image of a record. The errors wrap ErrUnreachable; all that
// is known for certain to be wrong is a problem of the document. The client chooses
// which addresses may be reached and which servers are trusted, ctx how long it may
// take.
func FetchImage(ctx context.Context, client *http.Client, uri string) (Document, error) {
	d, err := fetch(ctx, client, uri, "image/svg+xml")
	if err != nil || d.Content == nil {
		return d, err
	}
	var found problems
	// RFC 9399 uses the second one for SVGZ.
	ok := d.ContentType == "image/svg+xml" || d.ContentType == "image/svg+xml+gzip"
	found.note(!ok, WrongContentType, d.URI, d.ContentType)
	d.Problems = append(d.Problems, found...)
	return d, nil
}

// FetchEvidence gets the evidence document of a record, as FetchImage gets an
// image. No rule says what media type it has.
func FetchEvidence(ctx context.Context, client *http.Client, uri string) (Document, error) {
	return fetch(ctx, client, uri, "application/pem-certificate-chain, */*;q=0.5")
}

// fetch gets a document.
func fetch(ctx context.Context, client *http.Client, uri, accept string) (Document, error) {
	d := Document{URI: uri}
	var found problems
	if kind := checkURI(uri); kind != "" {
		found.note(true, kind, uri, uri)
		d.Problems = found
		return d, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, http.NoBody)
	if err != nil {
		return d, fmt.Errorf("fetch %s: %w", uri, err)
	}
	request.Header.Set("Accept", accept)
	response, err := guarded(client).Do(request)
	if err != nil {
		kind := fetchKind(err)
		if kind == "" {
			return d, fmt.Errorf("fetch %s: %w: %w", uri, ErrUnreachable, err)
		}
		found.note(true, kind, uri, err.Error())
		d.Problems = found
		return d, nil
	}
	defer func() { _ = response.Body.Close() }() // read-only
	d.URI, d.Status = response.Request.URL.String(), response.StatusCode
	d.ContentType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if d.Status != http.StatusOK {
		found.note(true, UnexpectedStatus, d.URI, strconv.Itoa(d.Status))
		d.Problems = found
		return d, nil
	}
	d.Content, err = readBounded(response.Body)
	switch {
	case errors.Is(err, errTooLarge):
		found.note(true, DocumentTooLarge, d.URI, err.Error())
	case err != nil:
		return d, fmt.Errorf("fetch %s: %w: %w", uri, ErrUnreachable, err)
	}
	d.Problems = found
	return d, nil
}

// guarded returns a copy of the client that follows redirects to HTTPS only and
// keeps no cookies.
func guarded(client *http.Client) *http.Client {
	c := *client
	c.Jar = nil
	c.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case next.URL.Scheme != "https":
			return errInsecureRedirect
		case len(via) > maxRedirects:
			return errTooManyRedirects
		default:
			return nil
		}
	}
	return &c
}

// fetchKind returns the problem that an error of the client is, "" where it says
// nothing about the document.
func fetchKind(err error) Kind {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errInsecureRedirect):
		return InsecureRedirect
	case errors.Is(err, errTooManyRedirects):
		return TooManyRedirects
	case errors.As(err, &untrusted):
		return UntrustedServer
	default:
		return ""
	}
}
