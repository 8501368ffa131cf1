package recordfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// bind writes lines of a zone file (RFC 1035 §5.1). Absolute names are right under any $ORIGIN.
func bind(zone string, records []record) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "; Add to the zone %s. Remove the records that these replace.\n", zone)
	for _, r := range records {
		fmt.Fprintf(&b, "%s. %d IN %s %s\n", r.name, r.ttl, r.kind, r.data())
	}
	return b.String(), nil
}

// data returns the data in zone file syntax.
func (r record) data() string {
	switch r.kind {
	case "MX":
		return r.preference + " " + r.exchange
	case "CNAME":
		return r.value
	}
	return `"` + strings.Join(dmarcd.EscapedStrings(r.value), `" "`) + `"`
}

// terraform writes resources of the provider hashicorp/dns. It puts quotes around a text and parses
// the result as a zone file, which splits long strings; then it joins the strings that it reads.
func terraform(zone string, records []record) (string, error) {
	var b strings.Builder
	hclHeader(&b, records, "Resources of the provider hashicorp/dns for the zone "+zone+".")
	for _, r := range records {
		kind := "dns_" + strings.ToLower(r.kind) + "_record_set"
		if r.kind == "CNAME" {
			kind = "dns_cname_record"
		}
		fmt.Fprintf(&b, "\nresource %s %s {\n  zone = %s\n", hclString(kind), r.resource(), hclString(zone+"."))
		if r.label != "" {
			fmt.Fprintf(&b, "  name = %s\n", hclString(r.label))
		}
		fmt.Fprintf(&b, "  ttl  = %d\n", r.ttl)
		switch r.kind {
		case "MX":
			fmt.Fprintf(&b, "  mx {\n    preference = %s\n    exchange   = %s\n  }\n}\n", r.preference, hclString(r.exchange))
		case "CNAME":
			fmt.Fprintf(&b, "  cname = %s\n}\n", hclString(r.value))
		default:
			fmt.Fprintf(&b, "  txt  = [%s]\n}\n", hclString(strings.Join(dmarcd.EscapedStrings(r.value), "")))
		}
	}
	return b.String(), nil
}

// cloudflare writes resources of the provider cloudflare/cloudflare, version 5. A text is in zone
// file syntax, with its quotes.
func cloudflare(zone string, records []record) (string, error) {
	var b strings.Builder
	hclHeader(&b, nil, "Resources of the provider cloudflare/cloudflare. var.zone_id is the ID of the zone "+zone+".")
	for _, r := range records {
		content := r.data()
		switch r.kind {
		case "MX":
			content = r.exchange
		case "CNAME": // the API of Cloudflare has names without the final dot
			content = strings.TrimSuffix(r.value, ".")
		}
		fmt.Fprintf(&b, "\nresource \"cloudflare_dns_record\" %s {\n  zone_id = var.zone_id\n  name    = %s\n  type    = %q\n  ttl     = %d\n  content = %s\n",
			r.resource(), hclString(r.name), r.kind, r.ttl, hclString(content))
		if r.kind == "MX" {
			fmt.Fprintf(&b, "\n  priority = %s\n", r.preference)
		}
		b.WriteString("}\n")
	}
	return b.String(), nil
}

// route53 writes resources of the provider hashicorp/aws. It puts quotes around a text, so that
// only those between the strings of a long one are written.
func route53(zone string, records []record) (string, error) {
	var b strings.Builder
	hclHeader(&b, records, "Resources of the provider hashicorp/aws. var.zone_id is the ID of the hosted zone "+zone+".")
	for _, r := range records {
		data := r.data()
		if r.kind == "TXT" {
			data = strings.Join(dmarcd.EscapedStrings(r.value), `""`)
		}
		fmt.Fprintf(&b, "\nresource \"aws_route53_record\" %s {\n  zone_id = var.zone_id\n  name    = %s\n  type    = %q\n  ttl     = %d\n  records = [%s]\n}\n",
			r.resource(), hclString(r.name), r.kind, r.ttl, hclString(data))
	}
	return b.String(), nil
}

// hclHeader writes comments about a file and about the record sets that may have to contain more.
func hclHeader(b *strings.Builder, sets []record, about string) {
	fmt.Fprintf(b, "# %s\n", about)
	for _, r := range sets {
		if r.kind == "TXT" && !strings.HasPrefix(r.name, "_") {
			fmt.Fprintf(b, "# A record set has all TXT records of its name: add those that %s needs besides.\n", r.name)
		}
	}
}

// resource returns the quoted name of a resource.
func (r record) resource() string {
	return hclString(strings.ToLower(r.kind) + "_" + strings.ReplaceAll(r.name, ".", "_"))
}

// hclString returns a quoted string of HCL.
func hclString(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	for _, start := range []string{"$", "%"} {
		text = strings.ReplaceAll(text, start+"{", start+start+"{")
	}
	return `"` + text + `"`
}

// dnscontrol writes an extension of a zone for DNSControl, which quotes and splits texts itself.
// Its interpreter knows no comma after the last argument.
func dnscontrol(zone string, records []record) (string, error) {
	lines := make([]string, 0, len(records))
	for _, r := range records {
		arguments := literal(r.value)
		if r.kind == "MX" {
			arguments = r.preference + ", " + literal(r.exchange)
		}
		lines = append(lines, fmt.Sprintf("  %s(%s, %s, TTL(%d))", r.kind, literal(cmp.Or(r.label, "@")), arguments, r.ttl))
	}
	return fmt.Sprintf("// After D(%s, ...) in dnsconfig.js. Remove the records that these replace.\nD_EXTEND(%s,\n%s\n);\n",
		literal(zone), literal(zone), strings.Join(lines, ",\n")), nil
}

// octodns writes a part of the file of a zone for octoDNS, which splits texts itself. Its texts
// have a backslash before each semicolon, and quotes only inside.
func octodns(zone string, records []record) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "---\n# Add to %s.yaml: octoDNS deletes records that its file lacks.\n", zone)
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.label, b.label) })
	label := "-"
	for _, r := range records {
		if r.label != label {
			label = r.label
			fmt.Fprintf(&b, "%s:\n", literal(label))
		}
		fmt.Fprintf(&b, "- type: %s\n  ttl: %d\n", r.kind, r.ttl)
		if r.kind == "MX" {
			fmt.Fprintf(&b, "  values:\n  - exchange: %s\n    preference: %s\n", literal(r.exchange), r.preference)
			continue
		}
		if strings.HasPrefix(r.value, `"`) || strings.Contains(r.value, `" "`) || strings.Contains(r.value, `\;`) {
			return "", errUnsupported("octoDNS cannot express the value of TXT " + r.name + ". Choose another format, or enter it by hand.")
		}
		fmt.Fprintf(&b, "  value: %s\n", literal(strings.NewReplacer(`\`, `\\`, ";", `\;`).Replace(r.value)))
	}
	return b.String(), nil
}

// literal returns a string of JSON, which is one of JavaScript and of YAML too.
func literal(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string has no errors
	return strings.TrimSuffix(b.String(), "\n")
}
