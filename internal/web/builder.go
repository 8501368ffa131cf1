package web

import (
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// exampleDomain is the default domain of a builder.
const exampleDomain = "example.com"

// maxRecord limits a record, in bytes; DNS allows 64 KiB in total.
const maxRecord = 4096

// builder makes the record of one protocol from a form, and explains a pasted one. What it edits
// is a text: the record, or the policy of MTA-STS, from which the record follows.
type builder struct {
	part       service.Part
	name, lead string
	// version is how a record starts.
	version string
	// first is a field that the form always sends.
	first string
	// fields are those of the form, with the values of a text.
	fields func(text string) []ui.Field
	// text returns the text that a form describes; base is the one that it started with.
	text func(base string, form url.Values) string
	// start returns the text to start with for a domain of the team; found may be nil.
	start func(c *site.Call, domain dmarcd.Domain, found *facts.Facts) (string, error)
	// draft returns what a text publishes; nil is a record with that text.
	draft func(text string) service.Draft
	// explain adds to the result; may be nil.
	explain func(c *site.Call, view *builderView) error
}

// path is the path of the page.
func (b builder) path() string { return toolsPath + "/" + strings.ToLower(b.name) }

// builders are the builders in the order of their tabs.
func builders() []builder {
	return []builder{dmarcBuilder, spfBuilder, mtastsBuilder, tlsrptBuilder, bimiBuilder}
}

type builderView struct {
	Name, Lead string
	Tabs       []ui.Tab
	Form       ui.Form
	Paste      ui.Form
	// Domain is the domain of the record.
	Domain string
	// Record is what to publish.
	Record dmarcd.TXTRecord
	// File is a file to serve, and FileURL where; "" for none.
	File, FileURL string
	// Conclusion is whether to publish it, "" before anything was entered; Tone is its color.
	Conclusion, Tone string
	Findings         []wire.Finding
	// Warnings describe what is lost compared with the published record.
	Warnings []string
	// Views shows the actions of receivers, by the From domain.
	Tags, Views ui.Table
	// SPF is the result of an SPF record, nil for others.
	SPF *wire.SPF
	// Logo is the image of a BIMI record as a URL of data, "" if there is none to show.
	Logo template.URL

	text string
}

// build shows a builder. The URL contains the whole state, so it can be shared.
func build(b builder) func(*site.Call) error {
	path := b.path()
	return func(c *site.Call) error {
		query := c.R.URL.Query()
		view := builderView{Name: b.name, Lead: b.lead, Domain: exampleDomain}
		owner, pasted := readPasted(query.Get("record"), b.version)
		written := strings.TrimSpace(query.Get("domain"))
		if owner != "" {
			written = owner
		}
		var invalid *dmarcd.InvalidError
		if written != "" {
			prefix := strings.TrimSuffix(b.part.QueryName("x"), "x")
			name, err := dmarcd.ParseName(strings.TrimPrefix(strings.ToLower(written), prefix))
			if err == nil {
				view.Domain = name
			} else if !errors.As(err, &invalid) {
				return err
			}
		}
		base, err := b.base(c, written != "" && invalid == nil, view.Domain)
		if err != nil {
			return err
		}
		switch {
		case pasted != "":
			view.text = pasted
		case base != "" && !query.Has(b.first):
			view.text = base
		default:
			view.text = b.text(base, query)
		}
		view.text = view.text[:min(len(view.text), maxRecord)]
		view.Form, view.Paste = b.forms(path, view, query)
		if invalid != nil {
			view.Form.Fields[0].Value, view.Form.Fields[0].Error = written, invalid.Message
		}
		if err := b.result(c, &view, invalid, len(query) > 0); err != nil {
			return err
		}
		page := site.Page{Template: "builder", Title: b.name + " builder", Section: "Tools", Trail: toolsTrail()}
		if c.WantsFragment() {
			return c.Fragment(page, "result", view)
		}
		for _, other := range builders() {
			link := ui.Link{Text: other.name, Href: ui.WithQuery(other.path(), nil, "domain", written)}
			view.Tabs = append(view.Tabs, ui.Tab{Link: link, Current: other.part == b.part})
		}
		return c.Render(http.StatusOK, page, view, view.Tags, view.Views)
	}
}

// base returns the text to start with, "" unless the domain is one of the team.
func (b builder) base(c *site.Call, named bool, name string) (string, error) {
	if !named {
		return "", nil
	}
	domain, err := c.Team.Domain(c.R.Context(), name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	stored, err := c.Team.LatestCheck(c.R.Context(), domain)
	if err != nil && !errors.Is(err, dmarcd.ErrNotFound) {
		return "", err
	}
	return b.start(c, domain, stored.Check.Facts)
}

// forms returns the form with what was entered, or with the values of the text, and the form for
// a pasted text.
func (b builder) forms(path string, view builderView, query url.Values) (form, paste ui.Form) {
	fields := b.fields(view.text)
	if query.Has(b.first) && query.Get("record") == "" {
		for i, f := range fields {
			if f.Type == "select" && !query.Has(f.Name) {
				continue
			}
			fields[i].Value, fields[i].Checked = query.Get(f.Name), query.Get(f.Name) != ""
		}
	}
	domain := ui.Field{Name: "domain", Label: "Domain", Type: "text", Value: view.Domain, Autocomplete: "off"}
	form = ui.Form{Path: path, Method: "get", Submit: "Check record", Fields: append([]ui.Field{domain}, fields...)}
	pasted := ui.Field{Name: "record", Label: "Record", Type: "text", Value: view.text, Autocomplete: "off"}
	if b.draft != nil {
		pasted.Type, pasted.Label = "textarea", "Policy"
	}
	paste = ui.Form{Path: path, Method: "get", Submit: "Explain", Fields: []ui.Field{{Name: "domain", Type: "hidden", Value: view.Domain}, pasted}}
	return form, paste
}

// result tries the record, unless nothing was entered.
func (b builder) result(c *site.Call, view *builderView, invalid *dmarcd.InvalidError, entered bool) error {
	draft := service.Draft{Part: b.part, Record: view.text}
	if b.draft != nil {
		draft = b.draft(view.text)
		view.File, view.FileURL = draft.Policy, "https://mta-sts."+view.Domain+"/.well-known/mta-sts.txt"
	}
	view.Record = dmarcd.TXTRecord{Name: b.part.QueryName(view.Domain), Value: draft.Record}
	switch {
	case invalid != nil:
		view.Conclusion, view.Tone = invalid.Message+" The record shown is for "+exampleDomain+".", "bad"
	case !strings.HasPrefix(strings.ToLower(draft.Record), strings.ToLower(b.version)):
		view.Conclusion, view.Tone = "Receivers ignore this text because it does not start with "+b.version+".", "bad"
	case entered:
		tried, err := c.Team.TryRecord(c.R.Context(), view.Domain, draft)
		if err != nil {
			return err
		}
		shape := wire.NewCheck(facts.Check{Facts: &tried.Facts, Findings: tried.Findings})
		view.Findings = shape.Findings
		if len(shape.SPF.Tree) > 0 {
			view.SPF = &shape.SPF
		}
		view.Conclusion, view.Tone = b.conclude(tried.Findings)
		if tried.Logo != nil {
			view.Logo = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(tried.Logo)) //nolint:gosec // base64 of an image that only draws
		}
	}
	if b.explain == nil {
		return nil
	}
	return b.explain(c, view)
}

// conclude says whether a record can be published. With any warning about BIMI no logo is shown.
func (b builder) conclude(findings []dmarcd.Finding) (text, tone string) {
	count := func(level dmarcd.Level) (n int64) {
		for _, f := range findings {
			if f.Level == level {
				n++
			}
		}
		return n
	}
	problems := count(dmarcd.LevelError)
	if b.part == service.PartBIMI {
		problems += count(dmarcd.LevelWarning)
	}
	if problems > 0 {
		return "Do not publish this yet: " + phrase.Count(problems, "problem") + ".", "bad"
	}
	if slices.ContainsFunc(findings, func(f dmarcd.Finding) bool { return strings.HasSuffix(f.ID, ".inconclusive") }) {
		return "This could not be checked: the DNS did not answer.", "warning"
	}
	if n := count(dmarcd.LevelWarning); n > 0 {
		return "This works, and " + phrase.Count(n, "thing") + " can be better.", "warning"
	}
	return "Ready to publish.", "good"
}
