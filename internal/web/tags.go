package web

import (
	"cmp"
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// tagExplanation explains a tag of a record.
type tagExplanation struct {
	Name, Value string
	// Meaning explains the value; Old applies to receivers that follow RFC 7489, "" if it
	// is the same.
	Meaning, Old string
}

// explainTags explains the tags of a record in order.
func explainTags(r dmarc.Record) []tagExplanation {
	list := []tagExplanation{{Name: "v", Value: "DMARC1", Meaning: "This is a DMARC record. It must be the first tag."}}
	for _, t := range r.Tags {
		list = append(list, explainTag(strings.ToLower(t.Name), t.Value))
	}
	return list
}

// tagTable explains tags for both kinds of receivers.
func tagTable(tags []tagExplanation, csv string) ui.Table {
	t := ui.Table{
		ID: "tags", Caption: "Tag by tag", CSV: csv,
		Columns: []ui.Column{{Title: "Tag"}, {Title: "Meaning", Wide: true}, {Title: "Under RFC 7489", Wide: true}},
	}
	for _, tag := range tags {
		old := cmp.Or(tag.Old, "the same")
		t.Rows = append(t.Rows, []ui.Cell{ui.Code(tag.Name + "=" + tag.Value), ui.Text(tag.Meaning), ui.Text(old)})
	}
	return t
}

func explainTag(name, value string) tagExplanation {
	e := tagExplanation{Name: name, Value: value}
	word := strings.ToLower(value)
	switch name {
	case "p":
		e.Meaning = "Mail from the domain itself: " + policyMeaning(word)
	case "sp":
		e.Meaning = "Mail from subdomains without their own record: " + policyMeaning(word)
	case "np":
		e.Meaning = "Mail from non-existent subdomains: " + policyMeaning(word)
		e.Old = "Unknown tag: sp or p applies."
	case "adkim":
		e.Meaning = "DKIM is aligned " + modeMeaning(word)
	case "aspf":
		e.Meaning = "SPF is aligned " + modeMeaning(word)
	case "rua":
		e.Meaning = "Receivers send aggregate reports to these addresses, usually once a day. They contain no message content."
		e.Old = "Receivers only have to support two addresses."
	case "ruf":
		e.Meaning = "Receivers send reports about single messages to these addresses. Few receivers do."
	case "fo":
		e.Meaning = "When to send reports about single messages: 0 neither SPF nor DKIM passes, 1 one of them does not, d a DKIM signature fails, s SPF fails."
	case "t":
		e.Meaning = "With t=y, receivers apply one level less than the policy, and report as usual."
		e.Old = "Unknown tag: the policy applies in full."
	case "psd":
		e.Meaning = "Whether others register names below this domain: y yes, n no, u not specified."
		e.Old = "Unknown tag: the Public Suffix List decides."
	case "pct":
		e.Meaning = "Removed from the standard and ignored. Use t=y for testing."
		e.Old = "The share of failing mail that the policy applies to."
	case "rf", "ri":
		e.Meaning = "Removed from the standard and ignored."
		e.Old = "The format of failure reports, or the interval between aggregate reports."
	default:
		e.Meaning = "Unknown tag. Receivers ignore it."
	}
	return e
}

func policyMeaning(word string) string {
	switch word {
	case "none":
		return "if it fails DMARC, deliver it and report."
	case "quarantine":
		return "if it fails DMARC, treat it as suspicious."
	case "reject":
		return "if it fails DMARC, reject it."
	}
	return "the value must be none, quarantine or reject, so the record is invalid."
}

func modeMeaning(word string) string {
	switch word {
	case "s":
		return "only for exactly the From domain."
	case "r":
		return "for every domain of the same organization."
	}
	return "for every domain of the same organization: the value is neither r nor s, so the default applies."
}

// problemSentence describes a problem.
func problemSentence(p dmarc.Problem) string {
	switch p.Kind {
	case dmarc.MissingTag:
		return "The tag " + p.Tag + " is missing."
	case dmarc.InvalidValue:
		return "The value " + p.Text + " of the tag " + p.Tag + " is not allowed."
	case dmarc.UnknownTag:
		return "The tag " + p.Tag + " is unknown and ignored."
	case dmarc.HistoricTag:
		return "The tag " + p.Tag + " was removed by RFC 9989."
	case dmarc.DuplicateTag:
		return "The tag " + p.Tag + " occurs twice: receivers may ignore the whole record."
	case dmarc.TagCase:
		return "The tag " + p.Text + " should be in lower case."
	case dmarc.MalformedElement:
		return "The part " + p.Text + " is not of the form name=value."
	case dmarc.EmptyElement:
		return "The record has two consecutive semicolons."
	case dmarc.TooManyTags:
		return "The record has more than 100 tags."
	case dmarc.BadURI:
		return "The destination " + p.Text + " in " + p.Tag + " is invalid. Write mailto: followed by an address."
	case dmarc.UnsupportedScheme:
		return "Receivers only have to support mailto, not " + p.Text + "."
	case dmarc.SizeSuffix:
		return "The size limit in " + p.Text + " is ignored."
	case dmarc.DuplicateURI:
		return "The destination " + p.Text + " is listed twice."
	case dmarc.TooManyURIs:
		return "Receivers that follow RFC 7489 only have to support two destinations."
	case dmarc.UnusedFailureOptions:
		return "The tag fo is ignored without ruf."
	case dmarc.FailureReportsOnPSD:
		return "A domain with psd=y must not ask for failure reports."
	}
	return string(p.Kind)
}
