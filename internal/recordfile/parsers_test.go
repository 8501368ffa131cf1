package recordfile_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/miekg/dns"
	"github.com/zclconf/go-cty/cty"
	"go.yaml.in/yaml/v3"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/recordfile"
)

// zoneValue reads the record of a zone file, below an origin that must not matter.
func zoneValue(t tester, file string) dmarcd.DNSRecord {
	t.Helper()
	parser := dns.NewZoneParser(strings.NewReader(file), "wrong.example.", "")
	rr, ok := parser.Next()
	if !ok {
		t.Fatal(parser.Err(), file)
	}
	if _, more := parser.Next(); more || parser.Err() != nil {
		t.Errorf("got more than a record, error %v:\n%s", parser.Err(), file)
	}
	return ofRR(t, rr)
}

// ofRR returns a record of a parser. It reads the text from the message, where nothing is escaped.
func ofRR(t tester, rr dns.RR) dmarcd.DNSRecord {
	t.Helper()
	record := dmarcd.DNSRecord{Name: strings.TrimSuffix(rr.Header().Name, "."), Type: dns.TypeToString[rr.Header().Rrtype]}
	if rr.Header().Ttl != recordfile.TTL {
		t.Errorf("got TTL %d want %d", rr.Header().Ttl, recordfile.TTL)
	}
	wire := make([]byte, dns.Len(rr))
	length := musttest.Get(dns.PackRR(rr, wire, 0, nil, false))(t)
	data := wire[dns.Len(&dns.ANY{Hdr: *rr.Header()}):length]
	if mx, ok := rr.(*dns.MX); ok {
		record.Data = strings.TrimPrefix(mx.String(), mx.Hdr.String())
		return record
	}
	if alias, ok := rr.(*dns.CNAME); ok {
		record.Data = alias.Target
		return record
	}
	for len(data) > 0 {
		end := 1 + int(data[0])
		record.Data += string(data[1:end])
		data = data[end:]
	}
	return record
}

// resource returns the type and the attributes of the resource of a file of HCL, and its block,
// without evaluating anything but literals.
func resource(t tester, file string) (kind string, attributes map[string]cty.Value, body *hclsyntax.Body) {
	t.Helper()
	parsed, diagnostics := hclsyntax.ParseConfig([]byte(file), "records.tf", hcl.InitialPos)
	if diagnostics.HasErrors() {
		t.Fatal(diagnostics.Error(), file)
	}
	body, _ = parsed.Body.(*hclsyntax.Body)
	if len(body.Blocks) != 1 || len(body.Attributes) != 0 || body.Blocks[0].Type != "resource" || !hclsyntax.ValidIdentifier(body.Blocks[0].Labels[1]) {
		t.Fatal("want one resource with a valid name: " + file)
	}
	block := body.Blocks[0]
	return block.Labels[0], values(t, block.Body), block.Body
}

// values returns the attributes of a block.
func values(t tester, body *hclsyntax.Body) map[string]cty.Value {
	t.Helper()
	variables := &hcl.EvalContext{Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{"zone_id": cty.StringVal("Z1")})}}
	attributes := make(map[string]cty.Value)
	for name, attribute := range body.Attributes {
		value, diagnostics := attribute.Expr.Value(variables)
		if diagnostics.HasErrors() {
			t.Fatal(diagnostics.Error())
		}
		attributes[name] = value
	}
	return attributes
}

// zoneLine returns what a provider makes of its attributes.
func zoneLine(t tester, name, ttl, kind, data string) dmarcd.DNSRecord {
	t.Helper()
	return ofRR(t, musttest.Get(dns.NewRR(name+". "+ttl+" "+kind+" "+data))(t))
}

func ttlOf(attributes map[string]cty.Value) string {
	return attributes["ttl"].AsBigFloat().String()
}

// terraformValue reads as hashicorp/dns does.
func terraformValue(t tester, file string) dmarcd.DNSRecord {
	t.Helper()
	kind, attributes, body := resource(t, file)
	name := strings.TrimSuffix(attributes["zone"].AsString(), ".")
	if label, ok := attributes["name"]; ok {
		name = label.AsString() + "." + name
	}
	if kind == "dns_mx_record_set" {
		mx := values(t, body.Blocks[0].Body)
		return zoneLine(t, name, ttlOf(attributes), "MX", mx["preference"].AsBigFloat().String()+" "+mx["exchange"].AsString())
	}
	if kind == "dns_cname_record" {
		return zoneLine(t, name, ttlOf(attributes), "CNAME", attributes["cname"].AsString())
	}
	return zoneLine(t, name, ttlOf(attributes), "TXT", `"`+attributes["txt"].AsValueSlice()[0].AsString()+`"`)
}

// cloudflareValue reads as cloudflare/cloudflare does.
func cloudflareValue(t tester, file string) dmarcd.DNSRecord {
	t.Helper()
	_, attributes, _ := resource(t, file)
	data := attributes["content"].AsString()
	if priority, ok := attributes["priority"]; ok {
		data = priority.AsBigFloat().String() + " " + data
	}
	if attributes["type"].AsString() == "CNAME" {
		data += "." // names of Cloudflare are absolute
	}
	return zoneLine(t, attributes["name"].AsString(), ttlOf(attributes), attributes["type"].AsString(), data)
}

// route53Value reads as hashicorp/aws does: it puts quotes around texts. Route 53 rejects strings
// of more than 255 bytes.
func route53Value(t tester, file string) dmarcd.DNSRecord {
	t.Helper()
	_, attributes, _ := resource(t, file)
	data, kind := attributes["records"].AsValueSlice()[0].AsString(), attributes["type"].AsString()
	if kind == "TXT" {
		for part := range strings.SplitSeq(strings.NewReplacer(`\\`, "x", `\"`, "x").Replace(data), `""`) {
			if len(part) > 255 {
				t.Errorf("got a string of %d bytes want at most 255", len(part))
			}
		}
		data = `"` + data + `"`
	}
	return zoneLine(t, attributes["name"].AsString(), ttlOf(attributes), kind, data)
}

// octodnsValue reads as octoDNS does: a backslash is before each semicolon, and quotes are bare.
func octodnsValue(t tester, file string) dmarcd.DNSRecord {
	t.Helper()
	var zone map[string][]struct {
		Type   string
		TTL    int
		Value  *string
		Values []struct {
			Preference int
			Exchange   string
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(file))
	decoder.KnownFields(true)
	musttest.Do(t, decoder.Decode(&zone))
	for label, records := range zone {
		name := strings.TrimPrefix(label+".example.com", ".")
		if len(zone) != 1 || len(records) != 1 || records[0].TTL != recordfile.TTL {
			t.Errorf("got %v want one record", zone)
		}
		if mx := records[0].Values; len(mx) == 1 && mx[0].Preference == 0 {
			return dmarcd.DNSRecord{Name: name, Type: records[0].Type, Data: "0 " + mx[0].Exchange}
		}
		return dmarcd.DNSRecord{Name: name, Type: records[0].Type, Data: strings.NewReplacer(`\;`, ";", `\\`, `\`).Replace(*records[0].Value)}
	}
	t.Fatal("got no record: " + file)
	return dmarcd.DNSRecord{}
}

// dnscontrolStub defines the functions of DNSControl that files call.
const dnscontrolStub = `
const TTL = (ttl) => ({ttl});
const record = (Type) => (label, ...rest) => ({label, Type, ttl: rest.pop().ttl, Data: rest.join(" ")});
const TXT = record("TXT"), MX = record("MX"), CNAME = record("CNAME");
const D_EXTEND = (zone, r) => console.log(JSON.stringify({...r, Name: r.label === "@" ? zone : r.label + "." + zone}));
`

// runNode checks the syntax of a file for DNSControl, and returns the records of its calls.
func runNode(t *testing.T, file string) (records []dmarcd.DNSRecord) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "dnsconfig.js")
	musttest.Do(t, os.WriteFile(script, []byte(dnscontrolStub+file), 0o600))
	if out, err := exec.CommandContext(t.Context(), "node", "--check", script).CombinedOutput(); err != nil {
		t.Fatalf("scripts/need-node.sh installs node: %v %s", err, out)
	}
	out := musttest.Get(exec.CommandContext(t.Context(), "node", script).Output())(t)
	for line := range strings.Lines(string(out)) {
		var read struct {
			Name, Type, Data string
			TTL              int
		}
		musttest.Do(t, json.Unmarshal([]byte(line), &read))
		if read.TTL != recordfile.TTL {
			t.Errorf("got TTL %d want %d", read.TTL, recordfile.TTL)
		}
		records = append(records, dmarcd.DNSRecord{Name: read.Name, Type: read.Type, Data: read.Data})
	}
	return records
}
