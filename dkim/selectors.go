package dkim

import "slices"

// KnownSelector is a common selector.
type KnownSelector struct {
	// Name is the selector.
	Name string
	// User is the service whose customers use it, "" if many do.
	User string
}

// KnownSelectors returns common selectors for Probe, the most common first. Selectors from
// reports or from the owner are better. Services with individual or monthly selectors
// cannot be listed.
func KnownSelectors() []KnownSelector { return slices.Clone(knownSelectors) }

var knownSelectors = []KnownSelector{
	{"selector1", "Microsoft 365"},
	{"selector2", "Microsoft 365"},
	{"google", "Google Workspace"},
	{"default", ""},
	{"mail", ""},
	{"dkim", ""},
	{"s1", "Twilio SendGrid"},
	{"s2", "Twilio SendGrid"},
	{"k1", "Mailchimp"},
	{"k2", "Mailchimp"},
	{"k3", "Mailchimp"},
	{"dkim1", ""},
	{"dkim2", ""},
	{"email", ""},
	{"smtp", ""},
	{"20230601", "Gmail"},
	{"amazonses", "Amazon SES"},
	{"ses", "Amazon SES"},
	{"mandrill", "Mailchimp Transactional"},
	{"mte1", "Mailchimp Transactional"},
	{"mte2", "Mailchimp Transactional"},
	{"pm", "Postmark"},
	{"postmark", "Postmark"},
	{"protonmail", "Proton Mail"},
	{"protonmail2", "Proton Mail"},
	{"protonmail3", "Proton Mail"},
	{"fm1", "Fastmail"},
	{"fm2", "Fastmail"},
	{"fm3", "Fastmail"},
	{"cm", "Campaign Monitor"},
	{"zoho", "Zoho"},
	{"mxvault", "MxVault"},
	{"everlytickey1", "Everlytic"},
	{"everlytickey2", "Everlytic"},
	{"cf2024-1", "Cloudflare Email Routing"},
	{"mailjet", "Mailjet"},
	{"brevo", "Brevo"},
}
