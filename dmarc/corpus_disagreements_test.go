package dmarc_test

import "github.com/dmarcd/dmarcd/internal/corpustest"

// Why we differ, where a reason holds for several cases.
const (
	removedTag  = "RFC 9989 appendix C.5.2 removed pct, rf and ri: receivers ignore them whatever their value"
	actsAsNone  = "RFC 9989 §4.10.1: with an invalid sp or np the whole record acts as p=none"
	otherScheme = "RFC 9989 §4.7: a scheme that receivers do not support is ignored, the URI is valid"
	notAName    = "a name with empty labels is not a domain name"
)

// disagreements names the cases of the corpus on which we differ, and why. One that
// no longer differs fails the test.
var disagreements = corpustest.Disagreements{
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-013":                                                   actsAsNone,
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-014":                                                   actsAsNone,
	"dmarcgo/dmarc-record-parse.json dmarc-record-parse-020":                                                   "RFC 9989 §4.8: values are ASCII, and RFC 3986 knows no other characters in a URI",
	"mox/dmarc-evaluate.json dmarc-evaluate-014":                                                               "RFC 7489 §6.3: syntax errors after v and p are ignored; so says RFC 9989 §4.8 of all tags",
	"mox/external-report-authorisation.json external-report-authorisation-007":                                 "RFC 9990 §4: the version alone authorizes, what follows need not be a valid record",
	"mail-dmarc/dmarc-evaluate.json dmarc-evaluate-008":                                                        "RFC 9989 §4.10.1: without p and rua there is no DMARC processing, on a public suffix as well",
	"mail-dmarc/dmarc-record-parse.json dmarc-record-parse-006":                                                "RFC 9989 §4.10.1 asks for a syntactically valid URI in rua, not for a scheme that is supported",
	"mail-dmarc/dmarc-record-parse.json dmarc-record-parse-008":                                                "RFC 9989 §4.10.1: without p and rua there is no DMARC processing, on a public suffix as well",
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-087":                                                    otherScheme,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-088":                                                    otherScheme,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-090":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-091":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-092":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-093":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-094":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-095":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-096":                                                    removedTag,
	"mail-dmarc/dmarc-tag-values.json dmarc-tag-values-101":                                                    removedTag,
	"mailauth/rfc9989-evaluate.json rfc9989-evaluate-005":                                                      "RFC 9989 §4.10 step 2: several records are discarded, and the walk goes on",
	"OpenDMARC/alignment.json alignment-005":                                                                   notAName,
	"OpenDMARC/alignment.json alignment-006":                                                                   notAName,
	"OpenDMARC/dmarc-record-parse.json dmarc-record-parse-005":                                                 "RFC 9989 §4.7: the policy is one of three words, and n is none of them",
	"OpenDMARC/dmarc-record-parse.json dmarc-record-parse-010":                                                 "RFC 9989 §4.8: an invalid adkim falls back to its default, the record stays usable",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json FailureOptionTests.FailureOptionWithInvalidValue[ s]":      "RFC 9989 §4.8 allows white space around the equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json PercentTests.PercentWithInvalidValue[18=18]":               removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json PercentTests.PercentWithInvalidValue[]":                    removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportFormatTests.ReportFormatWithInvalidValue[999]":       removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportFormatTests.ReportFormatWithInvalidValue[]":          removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[-18]":   removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[18=18]": removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[]":      removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json ReportIntervalTests.ReportIntervalWithInvalidValue[abc]":   removedTag,
	"MailCheck.Public.Dmarc/dmarc-record-parse.json RufTests.RufWithValidEmptyValue[]":                         "RFC 9989 §4.8: a value has at least one character",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json UnknownTagTests.MalformedUnknownTagGivesError":             "RFC 9989 §4.7: unknown tags are ignored, and a value may hold an equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json VersionTests.VersionWithInvalidValue[ DMARC1]":             "RFC 9989 §4.8 allows white space around the equals sign",
	"MailCheck.Public.Dmarc/dmarc-record-parse.json VersionTests.VersionWithValidValue[dmarc1]":                "RFC 9989 §4.7: the version is exactly DMARC1",
}
