package aggregate

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"strings"
)

// Render writes the report as an RFC 9990 document. It omits elements without a value.
// Values that RFC 9990 does not define are written where RFC 7489 (pct) or reporters
// (psd) have them, so that nothing is lost: reading the document returns a report with
// the same key, content and records.
func Render(w io.Writer, report Report, records iter.Seq[Record]) error {
	out := &renderer{w: bufio.NewWriter(w)}
	out.raw(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	out.raw(`<feedback xmlns="` + namespaceRFC9990 + `">` + "\n")
	out.depth = 1
	out.value("version", report.Version)
	out.metadata(report.Metadata)
	out.policy(report.Policy)
	for record := range records {
		out.record(&record)
	}
	out.raw("</feedback>\n")
	return out.w.Flush() // returns the first error
}

type renderer struct {
	w     *bufio.Writer
	depth int
}

func (o *renderer) raw(s string) {
	_, _ = o.w.WriteString(s) // Flush returns the error
}

func (o *renderer) indent() {
	for range o.depth {
		o.raw("  ")
	}
}

// within writes an element with child elements.
func (o *renderer) within(name string, content func()) {
	o.indent()
	o.raw("<" + name + ">\n")
	o.depth++
	content()
	o.depth--
	o.indent()
	o.raw("</" + name + ">\n")
}

// value writes an element with text, unless the text is empty.
func (o *renderer) value(name, text string) {
	if text != "" {
		o.always(name, text)
	}
}

// always writes an element even if its text is empty.
func (o *renderer) always(name, text string) {
	o.indent()
	o.raw("<" + name + ">")
	_, _ = escaper.WriteString(o.w, text) // Flush returns the error
	o.raw("</" + name + ">\n")
}

// escaper escapes carriage returns, which would be normalized to line feeds otherwise.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")

func (o *renderer) metadata(m Metadata) {
	o.within("report_metadata", func() {
		o.value("org_name", m.OrgName)
		o.value("email", m.Email)
		o.value("extra_contact_info", m.ExtraContact)
		o.value("report_id", m.ReportID)
		o.within("date_range", func() {
			o.value("begin", strconv.FormatInt(m.Begin, 10))
			o.value("end", strconv.FormatInt(m.End, 10))
		})
		for _, text := range m.Errors {
			o.always("error", text)
		}
		o.value("generator", m.Generator)
	})
}

func (o *renderer) policy(p PublishedPolicy) {
	o.within("policy_published", func() {
		o.value("domain", p.Domain)
		o.value("discovery_method", p.DiscoveryMethod)
		o.value("p", string(p.P))
		o.value("sp", string(p.SP))
		o.value("np", string(p.NP))
		o.value("fo", p.FailureOptions)
		o.value("adkim", p.ADKIM)
		o.value("aspf", p.ASPF)
		o.value("testing", p.Testing)
		o.value("pct", p.Percent)
		o.value("psd", p.PSD)
	})
}

func (o *renderer) record(r *Record) {
	o.within("record", func() {
		o.within("row", func() {
			o.value("source_ip", r.Source)
			o.value("count", strconv.FormatInt(r.Count, 10))
			o.within("policy_evaluated", func() { o.evaluated(r) })
		})
		o.within("identifiers", func() {
			o.value("header_from", r.HeaderFrom)
			o.value("envelope_from", r.EnvelopeFrom)
			o.value("envelope_to", r.EnvelopeTo)
		})
		o.within("auth_results", func() { o.authResults(r) })
	})
}

func (o *renderer) evaluated(r *Record) {
	o.value("disposition", string(r.Disposition))
	o.value("dkim", string(r.DKIM))
	o.value("spf", string(r.SPF))
	for _, reason := range r.Reasons {
		o.within("reason", func() {
			o.value("type", reason.Type)
			o.value("comment", reason.Comment)
		})
	}
}

func (o *renderer) authResults(r *Record) {
	for _, d := range r.DKIMResults {
		o.within("dkim", func() {
			o.value("domain", d.Domain)
			o.value("selector", d.Selector)
			o.value("result", string(d.Result))
			o.value("human_result", d.HumanResult)
		})
	}
	for _, s := range r.SPFResults {
		o.within("spf", func() {
			o.value("domain", s.Domain)
			o.value("scope", s.Scope)
			o.value("result", string(s.Result))
			o.value("human_result", s.HumanResult)
		})
	}
}
