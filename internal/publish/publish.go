// Package publish changes TXT records at the DNS servers of customers: by dynamic updates (RFC 2136)
// that are signed with TSIG (RFC 8945), and by the HTTP API of PowerDNS.
//
// It changes one value of a TXT record set and leaves the others as they are. It reads the set before,
// refuses names with a CNAME record, and reads the set back. A dynamic update has the whole set as its
// precondition. PowerDNS has no preconditions: a change of the same set by someone else between reading
// and writing is lost.
//
// Begin in this file. It stores nothing; package service does.
package publish

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/outbound"
)

// Target is a server with its key: a TSIG key as [algorithm:]name:secret, or the key of the API.
type Target struct {
	dmarcd.PublishTarget
	Key string
}

// Change is a TXT record to publish.
type Change struct {
	// Domain is the domain whose record it is, and Name the name of the record: the domain or below it.
	Domain, Name string
	// Text is the new value.
	Text string
	// Base is the value that Text replaces. Another one of ours is ErrOther. With "" any is replaced.
	Base string
	// Ours reports whether a value is one of the kind of Text. The others stay.
	Ours func(text string) bool
}

// Stage is what failed.
type Stage string

// The stages.
const (
	StageConnection Stage = "connection"
	StageKey        Stage = "key"
	StageZone       Stage = "zone"
	StagePolicy     Stage = "policy" // the key may not change the name
	StageAlias      Stage = "alias"  // the name has a CNAME record
	StageOther      Stage = "other"  // the name has another record than the base
	StageAnswer     Stage = "answer"
)

// Error is why a record was not published.
type Error struct {
	Stage Stage
	// Message is a sentence for users. It has no text of the server or of the network.
	Message string
	// Uncertain is true if the server may have made the change, or may still make it.
	Uncertain bool
	// Reason is for operators; nil for none.
	Reason error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// value is one TXT record.
type value struct {
	data string // as on the wire: strings with their lengths
	// content is the form of PowerDNS. disabled ones are not served.
	content  string
	disabled bool
}

// text returns the strings of a value together.
func (v value) text() string {
	var all strings.Builder
	for data := v.data; data != ""; {
		n := min(int(data[0])+1, len(data))
		all.WriteString(data[1:n])
		data = data[n:]
	}
	return all.String()
}

// newValue returns the value of a text of printable ASCII.
func newValue(text string) value {
	var data, content strings.Builder
	for {
		part := text[:min(len(text), maxStringBytes)]
		data.WriteByte(byte(len(part))) //nolint:gosec // at most 255
		data.WriteString(part)
		content.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part) + `"`)
		if text = text[len(part):]; text == "" {
			return value{data: data.String(), content: content.String()[1:]}
		}
	}
}

// set is the TXT records of a name.
type set struct {
	ttl    uint32
	values []value
}

// with returns the set after a change, and the values of ours that it had.
func (s set) with(c Change) (after set, had []string) {
	after.ttl = s.ttl
	if len(s.values) == 0 {
		after.ttl = newTTL
	}
	for _, v := range s.values {
		if text := v.text(); !v.disabled && c.Ours(text) {
			had = append(had, text)
		} else {
			after.values = append(after.values, v)
		}
	}
	after.values = append(after.values, newValue(c.Text))
	return after, had
}

// same reports whether two sets have the same records.
func (s set) same(other set) bool {
	less := func(a, b value) int { return strings.Compare(a.data, b.data) }
	return slices.EqualFunc(slices.SortedFunc(slices.Values(s.values), less), slices.SortedFunc(slices.Values(other.values), less),
		func(a, b value) bool { return a.data == b.data && a.disabled == b.disabled })
}

const (
	maxStringBytes = 255 // of a TXT record
	newTTL         = 300 // seconds
	// maxValues is the number of TXT records at a name.
	maxValues = 200
	// attempts is how often a change is tried while others change the same set.
	attempts = 3
	// exchangeTimeout limits one exchange with a server.
	exchangeTimeout = 8 * time.Second
	// timeout limits everything about one record.
	timeout = 20 * time.Second
)

// readBackWaits are the waits before a change is read back: a secondary that forwards updates has them a
// little later.
var readBackWaits = []time.Duration{0, 200 * time.Millisecond, time.Second, 3 * time.Second}

// server is a way to change records. name has no trailing dot.
type server interface {
	// probe returns an error if the server does not let the key change the TXT records of a name.
	probe(ctx context.Context, name string) error
	// read returns the TXT records of a name.
	read(ctx context.Context, name string) (set, error)
	// replace replaces a set that read returned, or returns errChanged. absent is true if the name had no
	// set of its own: read had one of a wildcard.
	replace(ctx context.Context, name string, before, after set, absent bool) error
}

// errChanged means that the records of a name are not those that were read.
var errChanged = errors.New("the records of the name were changed meanwhile")

// Publisher publishes records. It is safe for concurrent use.
type Publisher struct {
	// Dial connects to name servers, and Client to APIs, both as the policy for outbound connections has it.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Client *http.Client
}

// New returns a Publisher that connects with a dialer.
func New(dialer *outbound.Dialer) *Publisher {
	return &Publisher{Dial: dialer.DialContext, Client: dialer.EndpointClient(nil)}
}

func (p *Publisher) server(t Target) (server, error) {
	if t.Kind == dmarcd.TargetPowerDNS {
		return newPowerDNS(p.Client, t)
	}
	return newDynamic(p.Dial, t)
}

// Try returns an *Error if a target does not let us change the TXT records of a name, and an
// *dmarcd.InvalidError for a key that cannot be one. It changes nothing.
func (p *Publisher) Try(ctx context.Context, t Target, name string) error {
	s, err := p.server(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.probe(ctx, name); err != nil {
		return explain(err, t)
	}
	_, err = s.read(ctx, name)
	if known := (*Error)(nil); errors.As(err, &known) && known.Stage == StageAlias {
		return nil // the record is managed by its CNAME record until then
	}
	return explain(err, t)
}

// Published reports whether the value of ours at the name of a change is its text.
func (p *Publisher) Published(ctx context.Context, t Target, c Change) (bool, error) {
	s, err := p.open(t, c)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	now, err := s.read(ctx, c.Name)
	if err != nil {
		return false, explain(err, t)
	}
	_, had := now.with(c)
	return len(had) == 1 && had[0] == c.Text, nil
}

// open returns the server of a target for a change of a name of the domain.
func (p *Publisher) open(t Target, c Change) (server, error) {
	if !within(c.Name, c.Domain) || !within(c.Name, t.Zone) {
		return nil, &Error{Stage: StageZone, Message: c.Name + " is not in the zone " + t.Zone + "."}
	}
	return p.server(t)
}

// within reports whether a name is a domain or below it.
func within(name, domain string) bool { return strings.HasSuffix("."+name, "."+domain) }

// Publish publishes a change and reads it back. A text that is published already is no error. An
// *Error says what failed; nothing was changed unless it is uncertain.
func (p *Publisher) Publish(ctx context.Context, t Target, c Change) error {
	s, err := p.open(t, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last set
	for i := range attempts {
		before, err := s.read(ctx, c.Name)
		if err != nil {
			return explain(err, t)
		}
		after, had := before.with(c)
		if len(had) == 1 && had[0] == c.Text {
			return nil
		}
		for _, text := range had {
			if c.Base != "" && text != c.Base && text != c.Text {
				return &Error{Stage: StageOther, Message: "The server has another record at " + c.Name + ", which was changed there. Publish that text as the next version, then change it."}
			}
		}
		absent := len(before.values) == 0 || i > 0 && before.same(last)
		if absent && len(before.values) > 0 {
			after = set{ttl: newTTL, values: []value{newValue(c.Text)}}
		}
		last = before
		if err = s.replace(ctx, c.Name, before, after, absent); !errors.Is(err, errChanged) {
			return readBack(ctx, s, t, c, err)
		}
	}
	return &Error{Stage: StageAnswer, Message: "The records at " + c.Name + " changed at the server while they were published. Try again.", Reason: errChanged}
}

// readBack waits until the server has a change. failed is what became of the change: after an answer that
// was lost, it may be there nevertheless.
func readBack(ctx context.Context, s server, t Target, c Change, failed error) error {
	if known := (*Error)(nil); failed != nil && (!errors.As(failed, &known) || !known.Uncertain) {
		return explain(failed, t)
	}
	var err error
	for _, wait := range readBackWaits {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		var now set
		if now, err = s.read(ctx, c.Name); err != nil {
			continue
		}
		if _, had := now.with(c); len(had) == 1 && had[0] == c.Text {
			return nil
		}
	}
	if failed != nil {
		err = failed
	}
	if err != nil {
		explained := &Error{}
		if errors.As(explain(err, t), &explained) {
			explained.Uncertain = true
			return explained
		}
	}
	return &Error{
		Stage: StageAnswer, Uncertain: true,
		Message: "The server accepted the change of " + c.Name + ", but answers without it.",
	}
}

// explain returns an *Error for an error of a server, nil for nil.
func explain(err error, t Target) error {
	known := &Error{}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		same := *known
		return &same
	case errors.Is(err, outbound.ErrNotAllowed):
		return &Error{Stage: StageConnection, Reason: err, Message: "This installation does not connect to private or reserved addresses. An operator can allow its network with DMARCD_OUTBOUND_ALLOW."}
	case errors.Is(err, outbound.ErrLookup):
		return &Error{Stage: StageConnection, Reason: err, Message: "The lookup of the server's address failed. Check its name."}
	}
	message := "The server cannot be reached over TCP, or does not answer in time. Check its name and port, and its firewall."
	if t.Kind == dmarcd.TargetPowerDNS {
		message = "The API cannot be reached, or does not answer in time. Check its URL, its certificate, and the setting webserver-allow-from. HTTP without TLS works in allowed networks only."
	}
	return &Error{Stage: StageConnection, Message: message, Reason: err}
}

// textData returns the data of a TXT record as it is on the wire.
func textData(rr *mdns.TXT) (string, error) {
	bare := &mdns.TXT{Hdr: mdns.RR_Header{Name: ".", Rrtype: mdns.TypeTXT, Class: mdns.ClassINET}, Txt: rr.Txt}
	const head = 11 // the root, type, class, TTL and length
	buffer := make([]byte, mdns.MaxMsgSize)
	end, err := mdns.PackRR(bare, buffer, 0, nil, false)
	if err != nil {
		return "", err
	}
	return string(buffer[head:end]), nil
}
