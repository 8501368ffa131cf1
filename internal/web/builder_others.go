package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/bimi"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/mtasts"
	"github.com/dmarcd/dmarcd/spf"
	"github.com/dmarcd/dmarcd/tlsrpt"
)

// found returns the start of a builder that is a record of the last check.
func found(record func(f *facts.Facts) string) func(*site.Call, dmarcd.Domain, *facts.Facts) (string, error) {
	return func(_ *site.Call, _ dmarcd.Domain, f *facts.Facts) (string, error) {
		if f == nil {
			return "", nil
		}
		return record(f), nil
	}
}

// spfBuilder builds SPF records.
var spfBuilder = builder{
	part: service.PartSPF, name: "SPF", version: "v=spf1", first: "all",
	lead:   "Lists the servers that may send mail with this domain as the envelope sender.",
	fields: spfFields,
	start:  found(func(f *facts.Facts) string { return f.SPF.Record }),
	text:   spfText,
}

// spfText returns the record that the form describes.
func spfText(_ string, form url.Values) string {
	terms := []string{"v=spf1"}
	for _, name := range []string{"mx", "a"} {
		if form.Get(name) != "" {
			terms = append(terms, name)
		}
	}
	for _, network := range listedNames(form.Get("addresses")) {
		family := "ip4:"
		if strings.Contains(network, ":") {
			family = "ip6:"
		}
		terms = append(terms, family+network)
	}
	for _, name := range listedNames(form.Get("include")) {
		terms = append(terms, "include:"+strings.TrimPrefix(name, "include:"))
	}
	terms = append(terms, strings.Fields(form.Get("other"))...)
	if form.Get("other") == "" || !strings.Contains(form.Get("other"), "redirect=") {
		terms = append(terms, oneOf(form.Get("all"), "~all", "-all", "?all"))
	}
	return strings.Join(terms, " ")
}

// listedNames splits a list with any separators.
func listedNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
}

// spfFields are the fields of the form for a record. Terms that have no field of their own are
// kept as they are; so are all terms if the order of some matters.
func spfFields(text string) []ui.Field {
	record, _ := spf.Parse(text)
	values := map[string][]string{}
	plain := true
	for _, term := range record.Terms {
		plain = plain && (term.Qualifier == spf.Pass || term.Kind == spf.All || term.Kind.Modifier())
	}
	all := "~all"
	for _, term := range record.Terms {
		short := term.String()
		field, value := "other", term.Text
		switch {
		case term.Kind == spf.All:
			all = short
			continue
		case !plain:
		case short == "mx" || short == "a":
			field, value = short, "yes"
		case term.Kind == spf.IP4 || term.Kind == spf.IP6:
			field, value = "addresses", shortNetwork(term.Network)
		case term.Kind == spf.Include:
			field, value = "include", term.Domain.String()
		}
		values[field] = append(values[field], value)
	}
	return []ui.Field{
		{Name: "mx", Label: "The servers that receive its mail also send", Type: "checkbox", Checked: values["mx"] != nil},
		{Name: "a", Label: "The web server of the domain also sends", Type: "checkbox", Checked: values["a"] != nil},
		{Name: "addresses", Label: "Addresses or networks of your servers", Type: "textarea", Value: strings.Join(values["addresses"], "\n"), Placeholder: "192.0.2.25"},
		{Name: "include", Label: "Services that send for you (include)", Type: "textarea", Value: strings.Join(values["include"], "\n"), Placeholder: "_spf.example.net", Hint: "The name that the service asks you to include."},
		{Name: "other", Label: "Other terms", Type: "text", Value: strings.Join(values["other"], " "), Autocomplete: "off"},
		{Name: "all", Label: "All other servers", Type: "select", Value: all, Choices: []ui.Choice{
			{Value: "~all", Label: "~all: are suspicious (softfail)"}, {Value: "-all", Label: "-all: fail"}, {Value: "?all", Label: "?all: nothing is said about them"},
		}},
	}
}

// shortNetwork returns a network without the length of a single address.
func shortNetwork(network netip.Prefix) string {
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// mtastsBuilder builds MTA-STS policies and their records.
var mtastsBuilder = builder{
	part: service.PartMTASTS, name: "MTA-STS", version: "v=STSv1", first: "mode",
	lead:   "Requires other servers to encrypt mail to this domain, and to check who they talk to.",
	fields: mtastsFields,
	start: found(func(f *facts.Facts) string {
		if f.MTASTS.Mode != "" {
			return mtastsText("", url.Values{
				"mode": {f.MTASTS.Mode}, "mx": {strings.Join(f.MTASTS.MX, " ")}, "max_age": {strconv.FormatInt(f.MTASTS.MaxAge, 10)},
			})
		}
		hosts := make([]string, len(f.MX.Hosts))
		for i, host := range f.MX.Hosts {
			hosts[i] = host.Name
		}
		return mtastsText("", url.Values{"mx": {strings.Join(hosts, " ")}})
	}),
	text: mtastsText,
	draft: func(text string) service.Draft {
		// Senders fetch the policy again when the id changes, so it follows from the policy.
		sum := sha256.Sum256([]byte(text))
		return service.Draft{Part: service.PartMTASTS, Record: mtasts.Record{ID: hex.EncodeToString(sum[:8])}.String(), Policy: text}
	},
}

// The times for which senders may cache a policy.
const (
	week = 7 * 24 * time.Hour
	year = 365 * 24 * time.Hour
)

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d.Seconds()), 10) }

// mtastsText returns the policy that the form describes.
func mtastsText(_ string, form url.Values) string {
	age := seconds(week)
	if n, err := strconv.ParseUint(form.Get("max_age"), 10, 32); err == nil {
		age = strconv.FormatUint(n, 10)
	}
	lines := []string{"version: STSv1", "mode: " + oneOf(form.Get("mode"), "testing", "enforce", "none")}
	for _, host := range listedNames(form.Get("mx")) {
		lines = append(lines, "mx: "+host)
	}
	return strings.Join(append(lines, "max_age: "+age), "\n") + "\n"
}

// mtastsFields are the fields of the form for a policy.
func mtastsFields(text string) []ui.Field {
	policy := mtasts.ParsePolicy(text)
	var ages []ui.Choice
	for _, age := range []struct {
		time  time.Duration
		label string
	}{{24 * time.Hour, "1 day"}, {week, "1 week"}, {30 * 24 * time.Hour, "30 days"}, {year, "1 year"}} {
		ages = append(ages, ui.Choice{Value: seconds(age.time), Label: age.label})
	}
	known := slices.ContainsFunc(ages, func(c ui.Choice) bool { return c.Value == seconds(policy.MaxAge) })
	if !known {
		ages = append(ages, ui.Choice{Value: seconds(policy.MaxAge), Label: seconds(policy.MaxAge) + " seconds"})
	}
	return []ui.Field{
		{Name: "mode", Label: "Mode", Type: "select", Value: policy.Mode.String(), Choices: []ui.Choice{
			{Value: "testing", Label: "testing: report failures, deliver anyway"}, {Value: "enforce", Label: "enforce: do not deliver without TLS"}, {Value: "none", Label: "none: withdraw the policy"},
		}},
		{Name: "mx", Label: "Mail servers (mx)", Type: "textarea", Value: strings.Join(policy.MX, "\n"), Placeholder: "mx1.example.com", Hint: "One on each line; *.example.com stands for all hosts of one label."},
		{Name: "max_age", Label: "Senders may cache it for", Type: "select", Value: seconds(policy.MaxAge), Choices: ages},
	}
}

// tlsrptBuilder builds TLS-RPT records.
var tlsrptBuilder = builder{
	part: service.PartTLSRPT, name: "TLS-RPT", version: "v=TLSRPTv1", first: "rua",
	lead: "Asks senders to report mail to this domain that could not be encrypted.",
	start: func(c *site.Call, domain dmarcd.Domain, f *facts.Facts) (string, error) {
		if f != nil && f.TLSRPT.Record != "" {
			return f.TLSRPT.Record, nil
		}
		setup, err := c.Team.Setup(c.R.Context(), domain.Name)
		for _, r := range setup.Records {
			if r.Name == tlsrpt.QueryName(domain.Name) {
				return r.Value, err
			}
		}
		return "", err
	},
	text: func(_ string, form url.Values) string { return "v=TLSRPTv1; rua=" + destinations(form.Get("rua")) },
	fields: func(text string) []ui.Field {
		record, _ := tlsrpt.ParseRecord(text)
		list := make([]string, len(record.RUA))
		for i, uri := range record.RUA {
			list[i] = strings.TrimPrefix(uri.Text, "mailto:")
		}
		return []ui.Field{{Name: "rua", Label: "Reports to (rua)", Type: "textarea", Value: strings.Join(list, "\n"), Placeholder: "tls-reports@example.com", Hint: "Email addresses, or https: addresses."}}
	},
}

// bimiBuilder builds BIMI records.
var bimiBuilder = builder{
	part: service.PartBIMI, name: "BIMI", version: "v=BIMI1", first: "l",
	lead:  "Shows your logo beside your mail. Needs p=quarantine or p=reject.",
	start: found(func(f *facts.Facts) string { return f.BIMI.Record }),
	text: func(_ string, form url.Values) string {
		// A semicolon would end the tag.
		value := func(name string) string { return strings.ReplaceAll(strings.TrimSpace(form.Get(name)), ";", "%3B") }
		text := "v=BIMI1; l=" + value("l")
		if evidence := value("a"); evidence != "" {
			text += "; a=" + evidence
		}
		return text
	},
	fields: func(text string) []ui.Field {
		record, _ := bimi.Parse(text)
		return []ui.Field{
			{Name: "l", Label: "Address of the logo (l)", Type: "text", Value: record.Location, Placeholder: "https://example.com/logo.svg", Autocomplete: "off", Hint: "An SVG of the profile Tiny PS, at most 32 KB."},
			{Name: "a", Label: "Address of the certificate (a)", Type: "text", Value: record.Evidence, Placeholder: "https://example.com/mark.pem", Autocomplete: "off", Hint: "Gmail and others show a logo only with a certificate."},
		}
	},
}
