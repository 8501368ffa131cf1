package spf

import "github.com/dmarcd/dmarcd/dns"

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
