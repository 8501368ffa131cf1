package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// exampleDomain is the default domain of the builder.
const exampleDomain = "example.com"

type builderView struct {
	Form  ui.Form
	Paste ui.Form
	// Domain is the domain of the record.
	Domain string
	// Record is the record from the form, or the pasted one.
	Record string
	// IsRecord is false if receivers ignore the text.
	IsRecord bool
	State    string
	Tags     ui.Table
	Problems []string
	// Warnings are what the record takes away from the one that is published.
	Warnings []string
	// Views shows the actions of receivers, by the From domain.
	Views ui.Table
}

// maxRecord limits a pasted record, in bytes; DNS allows 64 KiB in total.
const maxRecord = 4096

// builder builds a record from its form, or explains a pasted one. The URL contains the
// whole state, so it can be shared.
func (s *Web) builder(c *call) error {
	const path = Prefix + "/builder"
	query := c.r.URL.Query()
	owner, pasted := readPasted(query.Get("record"))
	view := builderView{Domain: exampleDomain, Record: pasted}
	written := strings.TrimSpace(query.Get("domain"))
	if owner != "" {
		written = owner
	}
	var badName error
	if written != "" {
		var name string
		if name, badName = dmarcd.ParseName(strings.TrimPrefix(strings.ToLower(written), "_dmarc.")); badName == nil {
			view.Domain = name
		}
	}
	var published, base dmarc.Record
	if written != "" && badName == nil {
		var err error
		if published, base, err = c.published(view.Domain); err != nil {
			return err
		}
	}
	switch {
	case view.Record != "":
	case base.Text != "" && !query.Has("p"):
		view.Record = base.Text
	default:
		view.Record = base.Edit(formTags(query)...)
	}
	if len(view.Record) > maxRecord {
		view.Record = view.Record[:maxRecord]
	}
	record, ok := dmarc.Parse(view.Record)
	view.IsRecord = ok
	if ok {
		view.State = record.State.String()
		view.Tags = tagTable(record, ui.WithQuery(path, query, "csv", "tags"))
		for _, problem := range record.Problems {
			view.Problems = append(view.Problems, problemSentence(problem))
		}
		view.Warnings = recordWarnings(published, record)
		view.Views = receiverTable(c.r.Context(), view.Domain, view.Record, ui.WithQuery(path, query, "csv", "receivers"))
	}
	view.Form, view.Paste = builderForm(view.Domain, record), pasteForm(view.Domain, view.Record)
	if invalid := (*dmarcd.InvalidError)(nil); errors.As(badName, &invalid) {
		view.Form.Fields[0].Value, view.Form.Fields[0].Error = written, invalid.Message+" The record shown is for "+exampleDomain+"."
	}
	return c.render(http.StatusOK, Page{Template: "builder", Title: "Record builder", Section: "Record builder"}, view, view.Tags, view.Views)
}

// published returns the record of a domain of the team, and the one that is proposed for it;
// both are empty for other domains.
func (c *call) published(name string) (published, proposed dmarc.Record, err error) {
	domain, err := c.team.Domain(c.r.Context(), name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return published, proposed, nil
	}
	if err != nil {
		return published, proposed, err
	}
	text, err := c.team.ProposedRecord(c.r.Context(), domain.Name)
	proposed, _ = dmarc.Parse(text)
	if domain.RecordDomain == domain.Name {
		published, _ = dmarc.Parse(domain.Record)
	}
	return published, proposed, err
}

// recordWarnings says what a record takes away from the one that is published, and where it
// contradicts itself.
func recordWarnings(published, record dmarc.Record) []string {
	var list []string
	for _, uri := range published.RUA {
		if !slices.ContainsFunc(record.RUA, func(u dmarc.URI) bool { return u.Address == uri.Address }) {
			list = append(list, "Reports are no longer sent to "+strings.TrimPrefix(uri.String(), "mailto:")+".")
		}
	}
	for _, of := range []struct {
		subject dmarc.Subject
		words   string
	}{{dmarc.Itself, "the domain"}, {dmarc.Subdomain, "subdomains"}, {dmarc.MissingSubdomain, "non-existent subdomains"}} {
		before, _ := published.Policy(of.subject)
		after, _ := record.Policy(of.subject)
		if before, after = published.Applied(before), record.Applied(after); after < before {
			list = append(list, "The policy for "+of.words+" becomes weaker: "+before.String()+" → "+after.String()+".")
		}
	}
	for tag, policy := range map[string]dmarc.Policy{"sp": record.SP, "np": record.NP} {
		if policy != dmarc.Unstated && policy < record.P {
			list = append(list, "The policy in "+tag+" is weaker than that of the domain, so attackers can spoof its subdomains instead.")
		}
	}
	if record.Testing && record.P == dmarc.None {
		list = append(list, "t=y has no effect with p=none.")
	}
	slices.Sort(list)
	return list
}

// formTags are the tags that the form says. Those that only say the default are empty.
func formTags(query url.Values) []dmarc.Tag {
	var tags []dmarc.Tag
	add := func(tag, value, standard string) {
		if value == standard {
			value = ""
		}
		tags = append(tags, dmarc.Tag{Name: tag, Value: value})
	}
	add("p", oneOf(query.Get("p"), "none", "quarantine", "reject"), "")
	add("sp", oneOf(query.Get("sp"), "", "none", "quarantine", "reject"), "")
	add("np", oneOf(query.Get("np"), "", "none", "quarantine", "reject"), "")
	add("adkim", oneOf(query.Get("adkim"), "r", "s"), "r")
	add("aspf", oneOf(query.Get("aspf"), "r", "s"), "r")
	add("psd", oneOf(query.Get("psd"), "u", "y", "n"), "u")
	add("t", oneOf(query.Get("t"), "n", "y"), "n")
	add("rua", destinations(query.Get("rua")), "")
	ruf := destinations(query.Get("ruf"))
	add("ruf", ruf, "")
	fo := oneOf(query.Get("fo"), "0", "1", "d", "s", "1:d:s")
	if ruf == "" { // without destinations fo is ignored (RFC 9989 §4.7)
		fo = "0"
	}
	add("fo", fo, "0")
	return tags
}

// oneOf returns word if it is allowed, otherwise the first allowed word.
func oneOf(word string, allowed ...string) string {
	for _, a := range allowed {
		if a == word {
			return word
		}
	}
	return allowed[0]
}

// destinations converts addresses with any separators to URIs. It drops characters that
// would end the tag or the record.
func destinations(written string) string {
	var uris []string
	for _, address := range strings.FieldsFunc(written, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == ';' }) {
		if !strings.Contains(address, ":") {
			address = "mailto:" + address
		}
		uris = append(uris, address)
	}
	return strings.Join(uris, ",")
}

func builderForm(domain string, r dmarc.Record) ui.Form {
	policy := func(none string) []ui.Choice {
		list := []ui.Choice{{Value: "none", Label: "none: delivered, and reported"}, {Value: "quarantine", Label: "quarantine: to the spam folder"}, {Value: "reject", Label: "reject: rejected"}}
		if none != "" {
			list = append([]ui.Choice{{Value: "", Label: none}}, list...)
		}
		return list
	}
	testing := "n"
	if r.Testing {
		testing = "y"
	}
	mode := []ui.Choice{{Value: "r", Label: "relaxed: same organization"}, {Value: "s", Label: "strict: same name"}}
	return ui.Form{Path: Prefix + "/builder", Method: "get", Submit: "Build record", Fields: []ui.Field{
		{Name: "domain", Label: "Domain", Type: "text", Value: domain, Autocomplete: "off"},
		{Name: "p", Label: "Policy (p)", Type: "select", Value: r.P.String(), Choices: policy("")},
		{Name: "sp", Label: "For subdomains (sp)", Type: "select", Value: r.SP.String(), Choices: policy("same as the domain")},
		{Name: "np", Label: "For non-existent subdomains (np)", Type: "select", Value: r.NP.String(), Choices: policy("same as subdomains")},
		{Name: "rua", Label: "Aggregate reports to (rua)", Type: "text", Value: addresses(r.RUA), Placeholder: "dmarc@example.com", Autocomplete: "off"},
		{Name: "ruf", Label: "Failure reports to (ruf)", Type: "text", Value: addresses(r.RUF), Autocomplete: "off"},
		{Name: "fo", Label: "Failure reports when (fo)", Type: "select", Value: r.FO.String(), Choices: []ui.Choice{
			{Value: "0", Label: "neither SPF nor DKIM passes"}, {Value: "1", Label: "SPF or DKIM does not pass"}, {Value: "d", Label: "a DKIM signature fails"}, {Value: "s", Label: "SPF fails"}, {Value: "1:d:s", Label: "any of these"},
		}},
		{Name: "t", Label: "Testing (t)", Type: "select", Value: testing, Choices: []ui.Choice{{Value: "n", Label: "no: apply the policy"}, {Value: "y", Label: "yes: apply one level less"}}},
		{Name: "adkim", Label: "DKIM alignment (adkim)", Type: "select", Value: r.ADKIM.String(), Choices: mode},
		{Name: "aspf", Label: "SPF alignment (aspf)", Type: "select", Value: r.ASPF.String(), Choices: mode},
		{Name: "psd", Label: "Public suffix (psd)", Type: "select", Value: r.PSD.String(), Choices: []ui.Choice{
			{Value: "u", Label: "not specified"}, {Value: "n", Label: "no: an organizational domain"}, {Value: "y", Label: "yes: others register names below it"},
		}},
	}}
}

func pasteForm(domain, record string) ui.Form {
	return ui.Form{Path: Prefix + "/builder", Method: "get", Submit: "Explain record", Fields: []ui.Field{
		{Name: "domain", Label: "Domain", Type: "hidden", Value: domain},
		{Name: "record", Label: "Record", Type: "text", Value: record, Autocomplete: "off"},
	}}
}

func addresses(uris []dmarc.URI) string {
	list := make([]string, len(uris))
	for i, u := range uris {
		list[i] = strings.TrimPrefix(u.String(), "mailto:")
	}
	return strings.Join(list, ", ")
}
