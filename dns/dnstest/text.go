package dnstest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// inconclusive is the word that stands in place of type or data.
const inconclusive = "INCONCLUSIVE"

// typeNames holds the types a line may name.
var typeNames = map[string]dns.Type{
	"A": dns.A, "NS": dns.NS, "CNAME": dns.CNAME, "SOA": dns.SOA, "PTR": dns.PTR,
	"MX": dns.MX, "TXT": dns.TXT, "AAAA": dns.AAAA, "DNAME": dns.DNAME, "DS": dns.DS,
	"RRSIG": dns.RRSIG, "DNSKEY": dns.DNSKEY, "TLSA": dns.TLSA,
}

var (
	errIncomplete = errors.New("want name, type and data")
	errQuote      = errors.New("the quote does not end")
	errFamily     = errors.New("the address is of the other family")
)

// token is one field of a line; quoted ones are the strings of a TXT record.
type token struct {
	text   string
	quoted bool
}

// addLine reads one line of the form that New describes.
func (z *Zone) addLine(line string) error {
	tokens, err := split(line)
	if err != nil || len(tokens) == 0 {
		return err
	}
	if len(tokens) == 2 && tokens[1].text == inconclusive {
		z.Fail(tokens[0].text)
		return nil
	}
	r := dns.Record{Name: tokens[0].text, TTL: defaultTTL}
	tokens = tokens[1:]
	if len(tokens) > 0 {
		if seconds, err := strconv.ParseUint(tokens[0].text, 10, 31); err == nil {
			r.TTL = time.Duration(seconds) * time.Second
			tokens = tokens[1:]
		}
	}
	if len(tokens) < 2 {
		return errIncomplete
	}
	t, ok := typeNames[tokens[0].text]
	if !ok {
		return fmt.Errorf("unknown type %q", tokens[0].text)
	}
	r.Type = t
	data := tokens[1:]
	if data[0].text == inconclusive && !data[0].quoted {
		z.Fail(r.Name, t)
		return nil
	}
	if err := setData(&r, data); err != nil {
		return err
	}
	z.Add(r)
	return nil
}

// setData fills the fields of r that its type uses.
func setData(r *dns.Record, data []token) error {
	switch r.Type {
	case dns.TXT:
		for _, d := range data {
			if !d.quoted {
				return fmt.Errorf("the string %q of a TXT record is not quoted", d.text)
			}
			r.Text = append(r.Text, d.text)
		}
		return nil
	case dns.A, dns.AAAA:
		addr, err := netip.ParseAddr(data[0].text)
		if err != nil {
			return fmt.Errorf("read address: %w", err)
		}
		if addr.Is4() != (r.Type == dns.A) {
			return errFamily
		}
		r.Addr = addr
		return nil
	case dns.MX:
		if len(data) != 2 {
			return errIncomplete
		}
		preference, err := strconv.ParseUint(data[0].text, 10, 16)
		if err != nil {
			return fmt.Errorf("read preference: %w", err)
		}
		r.Preference, r.Host = uint16(preference), data[1].text
		return nil
	case dns.NS, dns.CNAME, dns.PTR, dns.DNAME:
		r.Host = data[0].text
		return nil
	default:
		var digits strings.Builder
		for _, d := range data {
			digits.WriteString(d.text)
		}
		raw, err := hex.DecodeString(digits.String())
		if err != nil {
			return fmt.Errorf("read hexadecimal data: %w", err)
		}
		r.Raw = raw
		return nil
	}
}

// split cuts a line into its fields. A semicolon outside of quotes begins a
// comment; inside of quotes a backslash takes the next character as it stands.
func split(line string) ([]token, error) {
	var tokens []token
	for {
		line = strings.TrimLeft(line, " \t\r")
		switch {
		case line == "" || line[0] == ';':
			return tokens, nil
		case line[0] == '"':
			text, rest, err := unquote(line[1:])
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{text, true})
			line = rest
		default:
			end := strings.IndexAny(line, " \t\r;")
			if end < 0 {
				end = len(line)
			}
			tokens = append(tokens, token{line[:end], false})
			line = line[end:]
		}
	}
}

// unquote reads up to the closing quote and returns what follows it.
func unquote(s string) (text, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return "", "", errQuote
}
