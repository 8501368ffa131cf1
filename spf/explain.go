package spf

import (
	"context"
	"net/netip"
	"time"

	"github.com/dmarcd/dmarcd/dns"
)

// Status summarizes the records of a domain.
type Status string

const (
	// StatusOK means that there is one record, and every record below it can be
	// evaluated.
	StatusOK Status = "ok"
	// StatusNone means that there is no record.
	StatusNone Status = "none"
	// StatusMultiple means that there are several, which is a permerror.
	StatusMultiple Status = "multiple"
	// StatusPermError means that a client that matches nothing before gets a
	// permerror.
	StatusPermError Status = "permerror"
	// StatusInconclusive means that some lookups failed and the others give no other status.
	StatusInconclusive Status = "inconclusive"
)

// Limits bound the work of Explain. Zero fields mean the default.
type Limits struct {
	// Questions is the maximum number of distinct queries, 100 by default.
	Questions int
	// Depth is the maximum nesting of records, 20 by default.
	Depth int
	// Concurrency is the number of concurrent queries, 8 by default.
	Concurrency int
}

// Voids counts terms with void lookups (RFC 7208 §4.6.4). The number depends on the
// client: for the same a term, the receiver queries AAAA records for an IPv6 client, and A
// records otherwise.
type Voids struct {
	IPv4 int
	IPv6 int
}

// Explanation is the tree of records of a domain.
type Explanation struct {
	Domain string
	Status Status
	// Root is the domain's own record and all that follows from it.
	Root *Node
	// Lookups is the number of terms that cause queries if nothing matches, in all records
	// together, and Voids the number of those that find nothing. Receivers stop after 10 and 2;
	// the explanation continues.
	Lookups int
	Voids   Voids
	// Questions is the number of queries sent.
	Questions int
	// Truncated reports that a limit made the tree incomplete.
	Truncated bool
	// Problems lists all problems in the order of the tree; those of the whole tree are
	// last.
	Problems []Problem
}

// Node is one record in the tree.
type Node struct {
	Domain string
	// Status is the result for Domain itself, without nested records.
	Status Status
	// Outcome, Reason, Aliases and TTL are from the answer with the record.
	Outcome dns.Outcome
	Reason  string
	Aliases []string
	TTL     time.Duration
	// Texts are the SPF records found. Unless there is exactly one, Record and Terms are
	// empty.
	Texts  []string
	Record Record
	Terms  []Step
	// Lookups and Voids count the terms of this record and of nested ones. If a term
	// refers to a missing record, the void lookup is counted here, not in the Step.
	Lookups int
	Voids   Voids
	// Truncated is the limit that was reached before all terms were processed, or "".
	Truncated string

	others     []string // TXT records at Domain that are not SPF records
	longString int      // the length of a string of the record, if it is over 255
}

// Step is one term of a record and its lookups.
type Step struct {
	Term Term
	// Target is the name that the term refers to, "" if it has none or is Dynamic.
	Target string
	// Provider is the well-known mail service of the target.
	Provider string
	// Dynamic reports that the term depends on the message: its domain has macros for the
	// client or the local part, or it is a ptr.
	Dynamic bool
	// Ignored means that the term has no effect: it follows all, or is a redirect next to all.
	Ignored bool
	// Cost is the number of lookups of the term, including nested records. Lookups and
	// Voids are the running totals after it. A redirect is evaluated after all mechanisms,
	// wherever it is (RFC 7208 §6.1).
	Cost    int
	Lookups int
	Voids   Voids
	// Void is 0 or 1 per address family: whether the term's own lookup finds nothing.
	Void Voids
	// Questions are the results of the term's own queries: A and AAAA records for an a
	// term, MX records for an mx, A records for an exists. Include and redirect use Child.
	Questions []Lookup
	// Hosts are the mail exchangers of an mx in order of preference, at most ten.
	Hosts []Host
	// Exchangers is the total number of mail exchangers.
	Exchangers int
	// Ranges are the addresses that the term covers. A tree has at most 10,000 from DNS;
	// the others are left out.
	Ranges []netip.Prefix
	// Child is the record that an include or redirect refers to. It is nil if the term is
	// Dynamic, Ignored, a Loop or Repeated, or if a limit was reached.
	Child *Node
	// Loop reports that the term refers to a record that contains it.
	Loop bool
	// Repeated reports that the record is shown elsewhere in the tree. Its lookups count
	// again.
	Repeated bool
	// Truncated is the limit that was reached before the term was fully looked up, or "".
	Truncated string
}

// Host is a mail exchanger of an mx term.
type Host struct {
	Name string
	// Questions are the results of the queries for its A and AAAA records.
	Questions []Lookup
}

// Lookup is the result of a query without the records.
type Lookup struct {
	dns.Question

	Outcome dns.Outcome
	// Reason is why the outcome is inconclusive.
	Reason string
	// Aliases are the CNAME targets that were followed.
	Aliases []string
	// Records is the number of records in the answer.
	Records int
}

// The defaults of Limits.
const (
	defaultQuestions   = 100
	defaultDepth       = 20
	defaultConcurrency = 8
	// maxTerms limits the size of a tree: a hundred hostile records could have millions of
	// terms.
	maxTerms = 10_000
	// maxRanges bounds the ranges from DNS of a tree: thousands of terms can share one
	// answer with thousands of addresses. They are only used to find overlaps.
	maxRanges = 10_000
)

// Explain walks the tree of records of domain, without a client, and returns it with the
// cost and meaning of every term. It continues past the limits of receivers, up to its
// own, and records where it stopped.
//
// Queries of the same depth run concurrently, each once. The result does not depend on the
// order of the answers. The deadline of ctx bounds the time; lookups that miss it are
// inconclusive.
func Explain(ctx context.Context, r dns.Resolver, domain string, limits Limits) Explanation {
	domain = dns.Name(domain)
	x := Explanation{Domain: domain, Root: &Node{Domain: domain, Status: StatusNone}}
	if !isDomain(domain) {
		x.Status = StatusNone
		x.Problems = []Problem{{Kind: MalformedName, Position: Position{Domain: domain}, Name: domain}}
		return x
	}
	e := &explorer{
		resolver: r,
		limits:   limits.orDefaults(),
		root:     x.Root,
		nodes:    map[string]*Node{domain: x.Root},
		answers:  make(map[dns.Question]dns.Answer),
	}
	e.enter(x.Root, 0)
	e.run(ctx)
	x.Questions = len(e.answers)
	t := e.tally()
	x.Lookups, x.Voids = x.Root.Lookups, x.Root.Voids
	c := collector{tree: e, tally: t}
	c.collect()
	x.Problems, x.Truncated = c.problems, c.truncated
	x.Status = c.status()
	return x
}

func (l Limits) orDefaults() Limits {
	if l.Questions <= 0 {
		l.Questions = defaultQuestions
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	if l.Concurrency <= 0 {
		l.Concurrency = defaultConcurrency
	}
	return l
}

// providers maps domains that records commonly include to their operators. Names below
// belong to the same provider.
var providers = map[string]string{
	"_spf-eu.ionos.com":             "IONOS",
	"_spf-us.ionos.com":             "IONOS",
	"_spf.atlassian.net":            "Atlassian",
	"_spf.createsend.com":           "Campaign Monitor",
	"_spf.elasticemail.com":         "Elastic Email",
	"_spf.firebasemail.com":         "Firebase",
	"_spf.google.com":               "Google Workspace",
	"_spf.kundenserver.de":          "IONOS",
	"_spf.mail.hostinger.com":       "Hostinger",
	"_spf.mx.cloudflare.net":        "Cloudflare Email Routing",
	"_spf.protonmail.ch":            "Proton Mail",
	"_spf.qualtrics.com":            "Qualtrics",
	"_spf.salesforce.com":           "Salesforce",
	"_spf.yandex.net":               "Yandex 360",
	"_spf.yandex.ru":                "Yandex 360",
	"amazonses.com":                 "Amazon SES",
	"emsd1.com":                     "ActiveCampaign",
	"exacttarget.com":               "Salesforce Marketing Cloud",
	"freshemail.io":                 "Freshworks",
	"helpscoutemail.com":            "Help Scout",
	"hubspotemail.net":              "HubSpot",
	"icloud.com":                    "iCloud Mail",
	"iphmx.com":                     "Cisco Secure Email",
	"mail.zendesk.com":              "Zendesk",
	"mailgun.org":                   "Mailgun",
	"mailspamprotection.com":        "SiteGround",
	"mimecast.com":                  "Mimecast",
	"mktomail.com":                  "Adobe Marketo Engage",
	"mx.ovh.com":                    "OVHcloud",
	"ppe-hosted.com":                "Proofpoint Essentials",
	"pphosted.com":                  "Proofpoint",
	"relay.mailchannels.net":        "MailChannels",
	"secureserver.net":              "GoDaddy",
	"sendgrid.net":                  "Twilio SendGrid",
	"servers.mcsv.net":              "Mailchimp",
	"shops.shopify.com":             "Shopify",
	"sparkpostmail.com":             "SparkPost",
	"spf.brevo.com":                 "Brevo",
	"spf.constantcontact.com":       "Constant Contact",
	"spf.ess.barracudanetworks.com": "Barracuda",
	"spf.mailjet.com":               "Mailjet",
	"spf.mandrillapp.com":           "Mailchimp Transactional",
	"spf.messagelabs.com":           "Symantec Email Security.cloud",
	"spf.messagingengine.com":       "Fastmail",
	"spf.mtasv.net":                 "Postmark",
	"spf.privateemail.com":          "Namecheap Private Email",
	"spf.protection.office365.us":   "Microsoft 365 Government",
	"spf.protection.outlook.com":    "Microsoft 365",
	"spf.sendinblue.com":            "Brevo",
	"spf.smtp2go.com":               "SMTP2GO",
	"websitewelcome.com":            "HostGator",
	"zcsend.net":                    "Zoho Campaigns",
	"zoho.com":                      "Zoho Mail",
	"zoho.eu":                       "Zoho Mail",
	"zohomail.com":                  "Zoho Mail",
}

// Provider returns the name of the well-known mail service that the domain of an
// include belongs to, "" if it is not known.
func Provider(domain string) string {
	for name := dns.Name(domain); name != ""; name = dns.Parent(name) {
		if provider, found := providers[name]; found {
			return provider
		}
	}
	return ""
}
