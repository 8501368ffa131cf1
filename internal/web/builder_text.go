package web

import (
	"cmp"
	"strings"

	"github.com/dmarcd/dmarcd/dmarc"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// tagTable explains the tags of a record in order, for both kinds of receivers.
func tagTable(r dmarc.Record, csv string) ui.Table {
	t := ui.Table{
		ID: "tags", Caption: "Tag by tag", CSV: csv,
		Columns: []ui.Column{{Title: "Tag"}, {Title: "Meaning", Wide: true}, {Title: "Under RFC 7489", Wide: true}},
		Rows:    [][]ui.Cell{{ui.Code("v=DMARC1"), ui.Text("This is a DMARC record. It must be the first tag."), ui.Text("the same")}},
	}
	for _, tag := range r.Tags {
		name := strings.ToLower(tag.Name)
		meaning, old := explainTag(name, tag.Value)
		t.Rows = append(t.Rows, []ui.Cell{ui.Code(name + "=" + tag.Value), ui.Text(meaning), ui.Text(cmp.Or(old, "the same"))})
	}
	return t
}

// meanings are the meaning of each tag, which that of the value follows for policies and modes,
// and the meaning under RFC 7489, "" if it is the same.
var meanings = map[string]struct{ meaning, old string }{
	"p":     {"Mail from the domain itself: ", ""},
	"sp":    {"Mail from subdomains without their own record: ", ""},
	"np":    {"Mail from non-existent subdomains: ", "Unknown tag: sp or p applies."},
	"adkim": {"DKIM is aligned ", ""},
	"aspf":  {"SPF is aligned ", ""},
	"rua": {
		"Receivers send aggregate reports to these addresses, usually once a day. They contain no message content.",
		"Receivers only have to support two addresses.",
	},
	"ruf": {"Receivers send reports about single messages to these addresses. Few receivers do.", ""},
	"fo":  {"When to send reports about single messages: 0 neither SPF nor DKIM passes, 1 one of them does not, d a DKIM signature fails, s SPF fails.", ""},
	"t":   {"With t=y, receivers apply one level less than the policy, and report as usual.", "Unknown tag: the policy applies in full."},
	"psd": {"Whether others register names below this domain: y yes, n no, u not specified.", "Unknown tag: the Public Suffix List decides."},
	"pct": {"Removed from the standard and ignored. Use t=y for testing.", "The share of failing mail that the policy applies to."},
	"rf":  {"Removed from the standard and ignored.", "The format of failure reports."},
	"ri":  {"Removed from the standard and ignored.", "The requested interval between aggregate reports, in seconds."},
}

// explainTag returns the meaning of a tag, and that under RFC 7489, "" if it is the same.
func explainTag(name, value string) (meaning, old string) {
	known, ok := meanings[name]
	if !ok {
		return "Unknown tag. Receivers ignore it.", ""
	}
	switch name {
	case "p", "sp", "np":
		return known.meaning + policyMeaning(strings.ToLower(value)), known.old
	case "adkim", "aspf":
		return known.meaning + modeMeaning(strings.ToLower(value)), known.old
	}
	return known.meaning, known.old
}

func policyMeaning(word string) string {
	switch word {
	case "none":
		return "if it fails DMARC, it is delivered and reported."
	case "quarantine":
		return "if it fails DMARC, it goes to the spam folder."
	case "reject":
		return "if it fails DMARC, it is rejected."
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

// problemSentences describe each kind of problem; TAG and TEXT stand for those of the problem.
var problemSentences = map[dmarc.Kind]string{
	dmarc.MissingTag:           "The tag TAG is missing.",
	dmarc.InvalidValue:         "The value TEXT of the tag TAG is not allowed.",
	dmarc.UnknownTag:           "The tag TAG is unknown and ignored.",
	dmarc.HistoricTag:          "The tag TAG was removed by RFC 9989.",
	dmarc.DuplicateTag:         "The tag TAG occurs twice: receivers may ignore the whole record.",
	dmarc.TagCase:              "The tag TEXT should be in lower case.",
	dmarc.MalformedElement:     "The part TEXT is not of the form name=value.",
	dmarc.EmptyElement:         "The record has two consecutive semicolons.",
	dmarc.TooManyTags:          "The record has more than 100 tags.",
	dmarc.BadURI:               "The destination TEXT in TAG is invalid. Write mailto: followed by an address.",
	dmarc.UnsupportedScheme:    "Receivers only have to support mailto, not TEXT.",
	dmarc.SizeSuffix:           "The size limit in TEXT is ignored.",
	dmarc.DuplicateURI:         "The destination TEXT is listed twice.",
	dmarc.TooManyURIs:          "Receivers that follow RFC 7489 only have to support two destinations.",
	dmarc.UnusedFailureOptions: "The tag fo is ignored without ruf.",
	dmarc.FailureReportsOnPSD:  "A domain with psd=y must not ask for failure reports.",
}

// problemSentence describes a problem.
func problemSentence(p dmarc.Problem) string {
	sentence := cmp.Or(problemSentences[p.Kind], string(p.Kind))
	return strings.NewReplacer("TAG", p.Tag, "TEXT", p.Text).Replace(sentence)
}
