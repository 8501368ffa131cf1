package genuine

import (
	"context"
	"errors"
	"io"
	"strings"

	msgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/dns"
)

// maxSignatures limits the signatures that are verified, from the top: each costs a query and
// a pass over the mail (RFC 6376 §6.1 allows a limit).
const maxSignatures = 10

// DKIM results (RFC 8601 §2.7.1).
const (
	resultNone      = "none"
	resultPass      = "pass"
	resultFail      = "fail"
	resultPolicy    = "policy"
	resultTempError = "temperror"
	resultPermError = "permerror"
)

// signature is the result of one signature.
type signature struct {
	// domain is the d= tag.
	domain    string
	result    string
	alignment dmarc.Alignment
	// reason says why the result is not pass.
	reason string
}

// errFields means that the library found other signatures than readHeader.
var errFields = errors.New("other signatures")

// verify verifies the signatures of a mail; fields are their values. It returns an error if the
// mail could not be read completely: errBlank, or that of the reader or the library.
func (v *Verifier) verify(ctx context.Context, mail io.ReadSeeker, fields []string, from string) (signatures []signature, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	if _, err := mail.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	body := &guard{ctx: ctx, r: mail}
	keys := &keyring{ctx: ctx, resolver: v.Resolver}
	verified, err := msgauth.VerifyWithOptions(body, &msgauth.VerifyOptions{
		LookupTXT: keys.lookup, MaxVerifications: maxSignatures,
	})
	fields = fields[:min(len(fields), maxSignatures)]
	switch {
	case body.err != nil:
		return nil, body.err
	case err != nil && !errors.Is(err, msgauth.ErrTooManySignatures):
		return nil, err
	case len(verified) != len(fields):
		return nil, errFields
	}
	for i, one := range verified {
		if one.Err == nil && !keys.allow(one, fields[i]) {
			one.Err = errIdentity
		}
		s := signature{domain: dns.Name(one.Domain), result: resultOf(one.Err, fields[i])}
		if one.Err != nil {
			s.reason = strings.TrimPrefix(one.Err.Error(), "dkim: ")
		}
		s.alignment = dmarc.Align(ctx, v.Resolver, from, s.domain, dmarc.Relaxed)
		signatures = append(signatures, s)
	}
	return signatures, nil
}

// resultOf maps an error of the library to a DKIM result.
func resultOf(err error, field string) string {
	switch {
	case err == nil:
		return resultPass
	case msgauth.IsTempFail(err):
		return resultTempError
	case msgauth.IsPermFail(err), errors.Is(err, errIdentity):
		return resultPermError
	case isPartial(field):
		// Anyone can append text to a partly signed body. RFC 8460 §3 forbids it for TLS
		// reports, and the library rejects it for all mail.
		return resultPolicy
	default:
		return resultFail
	}
}

// isPartial reports whether a signature covers only part of the body (tag l).
func isPartial(field string) bool {
	_, partial := tag(field, "l")
	return partial
}

// tag returns the value of a signature tag, without white space.
func tag(field, name string) (string, bool) {
	for text := range strings.SplitSeq(field, ";") {
		if is, value, _ := strings.Cut(text, "="); strings.TrimSpace(is) == name {
			return strings.Join(strings.Fields(value), ""), true
		}
	}
	return "", false
}
