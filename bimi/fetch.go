package bimi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
)

const maxRedirects = 5

// ErrUnreachable is wrapped by fetch errors that say nothing about the document: the
// server could not be reached, or the connection broke.
var ErrUnreachable = errors.New("server cannot be reached")

var (
	errInsecureRedirect = errors.New("redirect to a URI that is not HTTPS")
	errTooManyRedirects = errors.New("too many redirects")
)

// Document is the result of fetching the URI of a record.
type Document struct {
	// URI is the final URI after redirects.
	URI string
	// Status is the HTTP status, 0 without a response.
	Status int
	// ContentType is the media type without parameters, "" if there is none.
	ContentType string
	// Content is the document, at most 1 MiB; nil if Problems explains why there is none.
	Content  []byte
	Problems []Problem
}

// FetchImage fetches the image of a record. Errors wrap ErrUnreachable; anything that is
// definitely wrong is a problem of the document. The client decides which addresses may
// be reached and which servers are trusted, ctx sets the deadline.
func FetchImage(ctx context.Context, client *http.Client, uri string) (Document, error) {
	d, err := fetch(ctx, client, uri, "image/svg+xml")
	if err != nil || d.Content == nil {
		return d, err
	}
	var found problems
	// The second type is for SVGZ (RFC 9399).
	ok := d.ContentType == "image/svg+xml" || d.ContentType == "image/svg+xml+gzip"
	found.note(!ok, WrongContentType, d.URI, d.ContentType)
	d.Problems = append(d.Problems, found...)
	return d, nil
}

// FetchEvidence fetches the evidence document of a record, like FetchImage. Any media
// type is accepted, because no specification names one.
func FetchEvidence(ctx context.Context, client *http.Client, uri string) (Document, error) {
	return fetch(ctx, client, uri, "application/pem-certificate-chain, */*;q=0.5")
}

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
			if named := (*url.Error)(nil); errors.As(err, &named) {
				err = named.Err // its text has the address again
			}
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

// guarded returns a copy of the client that follows redirects to HTTPS only and has no
// cookies.
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

// fetchKind returns the problem for an error of the client, "" if the error says nothing
// about the document.
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
