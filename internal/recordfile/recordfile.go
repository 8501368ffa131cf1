// Package recordfile writes DNS records as files for the tools that manage zones. The formats are
// in formats.go.
package recordfile

import (
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
)

// TTL is the time to live of all records, in seconds.
const TTL = 3600

// Format is a file format.
type Format struct {
	// ID is the name in the API and on the command line, Title that on pages.
	ID, Title string
	// extension is that of file names.
	extension string
	write     func(zone string, records []record) (string, error)
}

// record is a record of a zone. All bytes of its names and its value are printable ASCII.
type record struct {
	// name is without the final dot; label is relative to the zone, "" for the zone itself.
	name, label string
	// kind is TXT, MX or CNAME.
	kind string
	ttl  int
	// value is the text of a TXT record, or the target of a CNAME record with the final dot.
	value string
	// preference and exchange are those of an MX record.
	preference, exchange string
}

// Formats returns all formats.
func Formats() []Format {
	return []Format{
		{"bind", "BIND zone file", ".zone", bind},
		{"terraform", "Terraform (hashicorp/dns)", ".tf", terraform},
		{"cloudflare", "Terraform (Cloudflare)", ".tf", cloudflare},
		{"route53", "Terraform (Route 53)", ".tf", route53},
		{"dnscontrol", "DNSControl", ".js", dnscontrol},
		{"octodns", "octoDNS", ".yaml", octodns},
	}
}

// IDs returns the ids of all formats.
func IDs() []string {
	var ids []string
	for _, f := range Formats() {
		ids = append(ids, f.ID)
	}
	return ids
}

// Parse returns the format with an id.
func Parse(id string) (Format, error) {
	formats := Formats()
	if i := slices.IndexFunc(formats, func(f Format) bool { return f.ID == id }); i >= 0 {
		return formats[i], nil
	}
	return Format{}, &dmarcd.InvalidError{Field: "format", Code: "unknown_format", Message: "The format must be one of " + strings.Join(IDs(), ", ") + "."}
}

// FileName returns the name of a file for a zone.
func (f Format) FileName(zone string) string { return zone + f.extension }

// Zone returns the zone of a name: found, the zone that a check found for it or for a name above
// it, or else the organizational domain.
func Zone(name, found string) string {
	organization := dmarc.LegacyOrganization(name)
	if within(name, found) && within(found, organization) {
		return found
	}
	return organization
}

// within reports whether a name is in a zone.
func within(name, zone string) bool { return name == zone || strings.HasSuffix(name, "."+zone) }

// File returns a file with the records of a zone; others are left out. Of several records with the
// same name and type, which cannot all be published, it has the first. Errors are
// *dmarcd.InvalidError: without a record, and for a value that the format cannot express.
func (f Format) File(zone string, records []dmarcd.DNSRecord) (string, error) {
	var chosen []record
	for _, r := range records {
		if !within(r.Name, zone) || slices.ContainsFunc(chosen, func(c record) bool { return c.name == r.Name && c.kind == r.Type }) {
			continue
		}
		accepted, ok := newRecord(zone, r)
		if !ok {
			return "", errUnsupported("This record has characters that a file cannot have: " + r.Type + " " + r.Name + ". Enter it by hand.")
		}
		chosen = append(chosen, accepted)
	}
	if len(chosen) == 0 {
		return "", &dmarcd.InvalidError{Field: "format", Code: "no_record", Message: "There is no record to publish in the zone " + zone + "."}
	}
	return f.write(zone, chosen)
}

func errUnsupported(message string) error {
	return &dmarcd.InvalidError{Field: "format", Code: "unsupported_value", Message: message}
}

// newRecord returns a record in a zone, false if it contains anything but printable ASCII, or is of
// another type.
func newRecord(zone string, r dmarcd.DNSRecord) (record, bool) {
	accepted := record{
		name: r.Name, label: strings.TrimSuffix(strings.TrimSuffix(r.Name, zone), "."), kind: r.Type, ttl: TTL, value: r.Data,
	}
	switch r.Type {
	case "TXT":
		return accepted, IsName(r.Name) && !strings.ContainsFunc(r.Data, func(c rune) bool { return c < ' ' || c > '~' })
	case "CNAME":
		target := strings.TrimSuffix(r.Data, ".")
		accepted.value = target + "."
		return accepted, accepted.label != "" && IsName(r.Name) && IsName(target)
	case "MX":
		var ok bool
		accepted.preference, accepted.exchange, ok = strings.Cut(r.Data, " ")
		return accepted, ok && IsName(r.Name) && strings.Trim(accepted.preference, "0123456789") == "" && IsName(accepted.exchange)
	}
	return record{}, false
}

// IsName reports whether a name needs no escapes in any format.
func IsName(name string) bool {
	const longest = 253
	return name != "" && len(name) <= longest && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '.' && c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z')
	})
}
