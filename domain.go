package dmarcd

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dmarcd/dmarcd/dmarc"
)

// Domain is a mail domain that a team monitors. Two teams may monitor the same name; each
// has its own Domain and learns nothing about the other.
type Domain struct {
	ID   DomainID
	Name string // as ParseName returns it
	// Active is true if receivers find exactly one usable record for the domain, and its
	// reports arrive here; see Check.
	Active bool
	// Record is the DMARC record that applies, even an unusable one; "" if there is none.
	Record string
	// RecordDomain is the domain that publishes Record: the domain itself or an ancestor.
	RecordDomain string
	// Policy is the value of the record's p tag if it is none, quarantine or reject, else
	// "".
	Policy  string
	Purpose Purpose
	// ReportMailbox is the local part of the reporting address of this domain:
	// unguessable, and never reused for another domain.
	ReportMailbox string
	CreatedAt     time.Time
	UpdatedAt     time.Time // when a client-visible field last changed
	Grade         string    // of the last full check; "": not yet
	CheckedAt     time.Time // when DNS was last checked; zero: not yet
	KnownAt       time.Time // when DNS last answered; zero: not yet
	// Parked is true if a user marked the domain as not used for mail.
	Parked bool
	// ForwardingAccepted is how many affected forwarded messages of 30 days a person accepted.
	ForwardingAccepted int64
	// Sample is true if the domain and all its data are made up. Its DNS is not queried.
	Sample bool
	// Proof is how DNS shows that the team controls the domain; "" if no proof is required.
	Proof Proof
	// Challenge is a random text of this domain of this team; see ChallengeText.
	Challenge string
}

// Proof is how DNS shows that a team controls a domain. Until it does, the domain is not active, and
// records are attributed as if the team did not have it.
type Proof string

// The proofs. Each is published at the domain's own name, not at that of a parent, and without an
// alias (CNAME), whose target may be under the control of others.
const (
	ProofMissing   Proof = "missing"   // not found yet, or no longer
	ProofChallenge Proof = "challenge" // the text of the challenge
	ProofReports   Proof = "rua"       // the DMARC record names the reporting address of the domain
)

// ChallengeName is the name of the TXT record that proves control with ChallengeText.
func (d Domain) ChallengeName() string { return "_dmarcd-challenge." + d.Name }

// ChallengeText is the text of the TXT record at ChallengeName.
func (d Domain) ChallengeText() string { return "dmarcd-challenge=" + d.Challenge }

// ReportAddress returns the reporting address of the domain, or "" if no report domain is
// configured.
func (d Domain) ReportAddress(reportDomain string) string {
	if reportDomain == "" {
		return ""
	}
	return d.ReportMailbox + "@" + reportDomain
}

// EffectivePolicy returns the policy that receivers apply to the domain: none, quarantine or reject,
// or "" if it has no usable record. A subdomain may inherit it, and test mode weakens it by one
// level.
func (d Domain) EffectivePolicy() string {
	record, ok := dmarc.Parse(d.Record)
	if !ok {
		return ""
	}
	subject := dmarc.Itself
	if d.RecordDomain != d.Name {
		subject = dmarc.Subdomain
	}
	policy, _ := record.Policy(subject)
	return record.Applied(policy).String()
}

// TLSReportPath is the path prefix for TLS reports over HTTPS. The ReportMailbox of a
// domain follows.
const TLSReportPath = "/tlsrpt/"

// TLSReportURIs returns the destinations of TLS reports about the domain (RFC 8460 §3):
// its reporting address and, if baseURL is https, an HTTPS URL. It returns none if no
// report domain is configured.
func (d Domain) TLSReportURIs(reportDomain, baseURL string) []string {
	address := d.ReportAddress(reportDomain)
	if address == "" {
		return nil
	}
	uris := []string{"mailto:" + address}
	if base, err := url.Parse(baseURL); err == nil && base.Scheme == "https" {
		uris = append(uris, "https://"+base.Host+TLSReportPath+d.ReportMailbox)
	}
	return uris
}

// Purpose is the declared use of a domain; "" is undeclared.
type Purpose string

// The purposes that can be declared.
const (
	PurposeBusiness  Purpose = "business"
	PurposePersonal  Purpose = "personal"
	PurposeEducation Purpose = "education"
	PurposeNonprofit Purpose = "nonprofit"
)

// ParsePurpose returns the purpose named s, "" for "none", or an InvalidError.
func ParsePurpose(s string) (Purpose, error) {
	switch p := Purpose(s); p {
	case PurposeBusiness, PurposePersonal, PurposeEducation, PurposeNonprofit:
		return p, nil
	case "none":
		return "", nil
	}
	return "", &InvalidError{Field: "purpose", Message: "The purpose must be one of business, personal, education, nonprofit, none."}
}

// Covers reports whether name is parent itself or a name below it.
func Covers(parent, name string) bool {
	rest, ok := strings.CutSuffix(name, parent)
	return ok && parent != "" && (rest == "" || strings.HasSuffix(rest, "."))
}

// MaxMailbox is the length of the longest local part (RFC 5321 §4.5.3.1.1).
const MaxMailbox = 64

// IsReportMailbox reports whether a text can be the local part of a reporting address: at most
// MaxMailbox printable characters of ASCII. Other text cannot be a mailbox of any team, and the
// database may reject it.
func IsReportMailbox(text string) bool {
	return len(text) <= MaxMailbox && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// MaxBulk is how many domains can be changed at once.
const MaxBulk = 10_000

const (
	// MaxTags is how many tags a domain may have, MaxTeamTags how many different ones a team.
	MaxTags     = 20
	MaxTeamTags = 1000
	// maxTag is how many characters a tag may have.
	maxTag = 40
)

// ParseTag returns a tag in its canonical form: lower case, without spaces around it. A tag
// consists of letters, digits, hyphens, underscores and dots; anything else is an
// InvalidError.
func ParseTag(s string) (string, error) {
	tag := strings.ToLower(strings.TrimSpace(s))
	allowed := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r) }
	switch {
	case tag == "" || !utf8.ValidString(tag) || strings.ContainsFunc(tag, func(r rune) bool { return !allowed(r) }):
		return "", &InvalidError{Field: "tags", Message: "A tag consists of letters, digits, hyphens, underscores and dots."}
	case utf8.RuneCountInString(tag) > maxTag:
		return "", &InvalidError{Field: "tags", Message: fmt.Sprintf("A tag has at most %d characters.", maxTag)}
	}
	return tag, nil
}

// ParseTags returns tags in their canonical form, in order and each once. It is an
// InvalidError if one of them is not a tag or there are more than MaxTags.
func ParseTags(list []string) ([]string, error) {
	tags := make([]string, len(list))
	for i, s := range list {
		var err error
		if tags[i], err = ParseTag(s); err != nil {
			return nil, err
		}
	}
	slices.Sort(tags)
	if tags = slices.Compact(tags); len(tags) > MaxTags {
		return nil, &InvalidError{Field: "tags", Message: fmt.Sprintf("A domain has at most %d tags.", MaxTags)}
	}
	return tags, nil
}

// TagCount is a tag and how many domains of the team have it.
type TagCount struct {
	Tag     string
	Domains int
}

// Plan is the schedule of a domain after a check.
type Plan struct {
	// Next is the time of the next DMARC check after a conclusive one.
	Next time.Time
	// NextFull is the time of the next full check; zero leaves it unchanged.
	NextFull time.Time
	// Retry is the delay after an inconclusive check. It doubles with each further one,
	// up to MaxRetry.
	Retry, MaxRetry time.Duration
}

// After returns the delay after that many inconclusive checks in a row.
func (p Plan) After(failures int) time.Duration {
	wait := min(p.Retry, p.MaxRetry)
	for range min(failures-1, 30) {
		wait = min(2*wait, p.MaxRetry)
	}
	return wait
}

// DueDomain is a domain that is due for a check by schedule.
type DueDomain struct {
	Team TeamID
	Name string
	// Full selects a full check instead of DMARC only.
	Full bool
}

// SetupPurpose is the purpose of a setup record.
type SetupPurpose string

const (
	// SetupDMARC is the DMARC record, which asks for aggregate reports.
	SetupDMARC SetupPurpose = "dmarc"
	// SetupConsent is the record with which the report domain accepts reports about
	// another organization's domain (RFC 9990 §4).
	SetupConsent SetupPurpose = "report_authorization"
	// SetupTLS is the TLS-RPT record.
	SetupTLS SetupPurpose = "tls_rpt"
	// SetupChallenge is the record that proves control of the domain.
	SetupChallenge SetupPurpose = "challenge"
)

// SetupRecord is a TXT record to publish so that reports about a domain arrive here and count.
type SetupRecord struct {
	Purpose     SetupPurpose
	Name, Value string
	// Seen is true if DNS has the record; it is meaningful only if Known is true.
	Known, Seen bool
	// Why explains the record in a sentence.
	Why string
}

// Setup are the records to publish so that reports about a domain arrive at its reporting
// address. Without a report domain Address is "" and there is at most the challenge.
type Setup struct {
	Domain  Domain
	Address string
	Records []SetupRecord
}

// DNSRecords returns the records to publish.
func (s Setup) DNSRecords() []DNSRecord {
	records := make([]DNSRecord, len(s.Records))
	for i, r := range s.Records {
		records[i] = DNSRecord{Name: r.Name, Type: "TXT", Data: r.Value}
	}
	return records
}

// SelfTest is the result of sending a synthetic report to the reporting address of a
// domain. The report has no messages, and is deleted afterwards.
type SelfTest struct {
	Domain string
	// Stages are in order. A stage that depends on one that failed is missing.
	Stages []SelfTestStage
}

// Passed reports whether all stages passed.
func (s SelfTest) Passed() bool {
	for _, stage := range s.Stages {
		if !stage.Passed {
			return false
		}
	}
	return len(s.Stages) > 0
}

// The stages of a self-test.
const (
	StageMX           = "mx"           // the mail servers of the report domain are looked up
	StageSMTP         = "smtp"         // one of them accepts a connection and the recipient
	StageSpool        = "spool"        // it acknowledges the message, which is on disk then
	StageVerification = "verification" // the sender of the message is verified
	StageStore        = "store"        // the report is stored
)

// SelfTestStage is a part of the path of a report.
type SelfTestStage struct {
	Name   string
	Passed bool
	// Detail explains the result in a sentence.
	Detail string
	Took   time.Duration
}
