package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
)

// maxZoneBytes limits the answer with a zone: versions before 4.8 send all of its records.
const maxZoneBytes = 32 << 20

// powerDNS is the HTTP API of PowerDNS.
type powerDNS struct {
	client   *http.Client
	url, key string // of the zone
	zone     string // without a trailing dot
}

func newPowerDNS(client *http.Client, t Target) (*powerDNS, error) {
	key := strings.TrimSpace(t.Key)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &dmarcd.InvalidError{Field: "key", Message: "The key of the API is one word, the setting api-key of PowerDNS."}
	}
	return &powerDNS{client: client, zone: t.Zone, key: key, url: t.Server + "/api/v1/servers/localhost/zones/" + url.PathEscape(t.Zone+".")}, nil
}

// apiSet is a record set as the API has it.
type apiSet struct {
	Name       string      `json:"name"`
	Type       string      `json:"type"`
	TTL        uint32      `json:"ttl"`
	ChangeType string      `json:"changetype,omitempty"`
	Records    []apiRecord `json:"records"`
}

type apiRecord struct {
	Content  string `json:"content"`
	Disabled bool   `json:"disabled"`
}

// probe has nothing to find out: who may read may change everything.
func (p *powerDNS) probe(context.Context, string) error { return nil }

func (p *powerDNS) read(ctx context.Context, name string) (found set, err error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	response, err := p.send(ctx, http.MethodGet, "?rrset_name="+url.QueryEscape(name+"."), nil)
	if err != nil {
		return set{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read-only
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusUnprocessableEntity {
		return set{}, &Error{Stage: StageZone, Message: "PowerDNS has no zone " + p.zone + "."}
	}
	if err := status(response, http.StatusOK); err != nil {
		return set{}, err
	}
	body := &io.LimitedReader{R: response.Body, N: maxZoneBytes}
	err = eachSet(json.NewDecoder(body), func(s apiSet) error {
		if !strings.EqualFold(strings.TrimSuffix(s.Name, "."), name) {
			return nil
		}
		switch {
		case s.Type == "CNAME" && len(s.Records) > 0:
			return alias(name)
		case s.Type != "TXT":
			return nil
		case len(s.Records) > maxValues:
			return tooMany(name)
		}
		found.ttl = s.TTL
		for _, r := range s.Records {
			v, err := parseContent(r)
			if err != nil {
				return err
			}
			found.values = append(found.values, v)
		}
		return nil
	})
	switch {
	case body.N == 0:
		return set{}, &Error{Stage: StageAnswer, Message: "The zone is larger than 32 MiB. PowerDNS from 4.8 on sends the records of one name only."}
	case errors.Is(err, errShape):
		return set{}, &Error{Stage: StageAnswer, Message: "The answer is not one of the API of PowerDNS.", Reason: err}
	case err != nil:
		return set{}, err
	}
	return found, nil
}

// parseContent parses a TXT record in the form of zone files.
func parseContent(r apiRecord) (value, error) {
	rr, err := mdns.NewRR(". 0 IN TXT " + r.Content)
	txt, ok := rr.(*mdns.TXT)
	if err != nil || !ok || strings.ContainsAny(r.Content, "\r\n") {
		return value{}, fmt.Errorf("%w: a TXT record", errShape)
	}
	data, err := textData(txt)
	return value{data: data, content: r.Content, disabled: r.Disabled}, err
}

var errShape = errors.New("unexpected shape")

// eachSet reads a zone and calls f for each of its record sets, without holding them all.
func eachSet(from *json.Decoder, f func(apiSet) error) error {
	shape := func(err error) error { return fmt.Errorf("%w: %w", errShape, err) }
	opened := func(want json.Delim) error {
		switch token, err := from.Token(); {
		case err != nil:
			return shape(err)
		case token != want:
			return errShape
		}
		return nil
	}
	if err := opened('{'); err != nil {
		return err
	}
	listed := false
	for from.More() {
		field, err := from.Token()
		if err != nil {
			return shape(err)
		}
		if field != "rrsets" {
			var skipped json.RawMessage
			if err := from.Decode(&skipped); err != nil {
				return shape(err)
			}
			continue
		}
		if err := opened('['); err != nil {
			return err
		}
		for listed = true; from.More(); {
			var s apiSet
			if err := from.Decode(&s); err != nil {
				return shape(err)
			}
			if err := f(s); err != nil {
				return err
			}
		}
		if err := opened(']'); err != nil {
			return err
		}
	}
	if err := opened('}'); err != nil || listed {
		return err
	}
	return errShape
}

// replace reads the set once more before it replaces it: the API has no preconditions, so the time in
// which a change of someone else is lost is that of one request.
func (p *powerDNS) replace(ctx context.Context, name string, before, after set, _ bool) error {
	now, err := p.read(ctx, name)
	switch {
	case err != nil:
		return err
	case !now.same(before):
		return errChanged
	}
	change := apiSet{Name: name + ".", Type: "TXT", TTL: after.ttl, ChangeType: "REPLACE"}
	for _, v := range after.values {
		change.Records = append(change.Records, apiRecord{Content: v.content, Disabled: v.disabled})
	}
	body, err := json.Marshal(map[string]any{"rrsets": []apiSet{change}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	response, err := p.send(ctx, http.MethodPatch, "", body)
	if err != nil {
		return &Error{Stage: StageConnection, Uncertain: true, Message: "PowerDNS did not answer the change of " + name + ".", Reason: err}
	}
	defer response.Body.Close() //nolint:errcheck // read-only
	if response.StatusCode == http.StatusUnprocessableEntity {
		return &Error{Stage: StagePolicy, Message: "PowerDNS refuses the change of " + name + ". A secondary zone cannot be changed."}
	}
	err = status(response, http.StatusNoContent)
	if known := (*Error)(nil); errors.As(err, &known) && response.StatusCode >= http.StatusInternalServerError {
		known.Uncertain = true
	}
	return err
}

// send sends a request about the zone.
func (p *powerDNS) send(ctx context.Context, method, query string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.url+query, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", p.key)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return p.client.Do(request)
}

// status returns an error for another status than the one of success.
func status(response *http.Response, want int) error {
	switch response.StatusCode {
	case want:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		return &Error{Stage: StageKey, Message: "PowerDNS refuses the key of the API."}
	}
	return &Error{Stage: StageAnswer, Message: fmt.Sprintf("The API answered with the status %d. Check its URL.", response.StatusCode)}
}
