package web

import (
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
		Columns: []ui.Column{{Title: "Tag"}, {Title: "Meaning", Wide: true}, {Title: "Receivers of RFC 7489", Wide: true}},
	}
	for _, tag := range tags {
		old := tag.Old
		if old == "" {
			old = "the same"
		}
		t.Rows = append(t.Rows, []ui.Cell{ui.Code(tag.Name + "=" + tag.Value), ui.Text(tag.Meaning), ui.Text(old)})
	}
	return t
}

func explainTag(name, value string) tagExplanation {
	e := tagExplanation{Name: name, Value: value}
	word := strings.ToLower(value)
	switch name {
	case "p":
		e.Meaning = "For mail as the domain itself: " + policyMeaning(word)
	case "sp":
		e.Meaning = "For mail as a subdomain without a record of its own: " + policyMeaning(word)
	case "np":
		e.Meaning = "For mail as a name that does not exist: " + policyMeaning(word)
		e.Old = "Not known there: sp or p applies."
	case "adkim":
		e.Meaning = "DKIM counts " + modeMeaning(word)
	case "aspf":
		e.Meaning = "SPF counts " + modeMeaning(word)
	case "rua":
		e.Meaning = "Aggregate reports go there, once a day and without parts of messages."
		e.Old = "Receivers need serve no more than two addresses."
	case "ruf":
		e.Meaning = "Reports on single failing messages go there. Few receivers send them."
	case "fo":
		e.Meaning = "When reports on single messages are wanted: 0 nothing passed, 1 something did not, d a signature failed, s SPF failed."
	case "t":
		e.Meaning = "With y receivers apply one level less than the policy says, and report as usual."
		e.Old = "Not known there: the policy applies in full."
	case "psd":
		e.Meaning = "Whether others register names below this domain: y yes, n no, u it does not say."
		e.Old = "Not known there: the Public Suffix List decides."
	case "pct":
		e.Meaning = "Removed from the standard and ignored. Use t=y for testing."
		e.Old = "The share of failing mail that the policy is applied to."
	case "rf", "ri":
		e.Meaning = "Removed from the standard and ignored."
		e.Old = "The format of failure reports, or the interval between aggregate reports."
	default:
		e.Meaning = "Not a tag of DMARC. Receivers ignore it."
	}
	return e
}

func policyMeaning(word string) string {
	switch word {
	case "none":
		return "deliver it like any other, and report."
	case "quarantine":
		return "treat it as suspicious if it does not pass."
	case "reject":
		return "refuse it if it does not pass."
	}
	return "not one of none, quarantine and reject, so that the record is broken."
}

func modeMeaning(word string) string {
	switch word {
	case "s":
		return "only for exactly the name in From."
	case "r":
		return "for every name of the same organization."
	}
	return "for every name of the same organization: the value is not r or s, so that the default applies."
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
		return "The tag " + p.Tag + " stands there twice: receivers may ignore the whole record."
	case dmarc.TagCase:
		return "The tag " + p.Text + " should be written in lower case."
	case dmarc.MalformedElement:
		return "The part " + p.Text + " is no tag with a value."
	case dmarc.EmptyElement:
		return "There is nothing between two semicolons."
	case dmarc.TooManyTags:
		return "The record has more than a hundred tags."
	case dmarc.BadURI:
		return "The destination " + p.Text + " in " + p.Tag + " is no address. Write mailto: and an address."
	case dmarc.UnsupportedScheme:
		return "Receivers need only know mailto, not " + p.Text + "."
	case dmarc.SizeSuffix:
		return "The size limit in " + p.Text + " is ignored."
	case dmarc.DuplicateURI:
		return "The destination " + p.Text + " is listed twice."
	case dmarc.TooManyURIs:
		return "Receivers that follow RFC 7489 serve no more than two destinations."
	case dmarc.UnusedFailureOptions:
		return "The tag fo is ignored without ruf."
	case dmarc.FailureReportsOnPSD:
		return "A domain with psd=y must not ask for failure reports."
	}
	return string(p.Kind)
}
