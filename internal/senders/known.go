package senders

import "slices"

// Known returns the senders that the program knows by itself. The tables name what
// the services themselves document or show in every mail they send; an autonomous
// system is listed only where the service alone sends mail from it.
func Known() []Sender {
	return slices.Concat(mailboxProviders, marketing, transactional, crmAndSupport, businessApplications, gateways, hosting)
}

// mailboxProviders host the mailboxes of people and companies.
var mailboxProviders = []Sender{
	{"Google", Mailboxes, []uint32{15169}, []string{"google.com", "googlemail.com"}, []string{"gmail.com", "google.com", "googlemail.com", "gappssmtp.com"}},
	{"Microsoft 365", Mailboxes, nil, []string{"outlook.com", "hotmail.com"}, []string{"onmicrosoft.com", "outlook.com", "hotmail.com", "live.com"}},
	{"Yahoo", Mailboxes, []uint32{10310, 26101, 34010, 36646, 36647}, []string{"yahoo.com", "yahoodns.net"}, []string{"yahoo.com", "ymail.com", "aol.com", "rocketmail.com"}},
	{"Apple iCloud", Mailboxes, []uint32{714, 6185}, []string{"icloud.com", "apple.com"}, []string{"icloud.com", "icloudmailadmin.com", "me.com", "mac.com"}},
	{"Zoho Mail", Mailboxes, []uint32{2639, 56201, 205111}, []string{"zoho.com", "zoho.eu", "zoho.in", "zohomail.com"}, []string{"zoho.com", "zoho.eu", "zoho.in", "zohomail.com", "zohomail.eu"}},
	{"Fastmail", Mailboxes, []uint32{151847}, []string{"messagingengine.com", "fastmail.com"}, []string{"messagingengine.com", "fastmail.com", "fastmail.fm", "pobox.com"}},
	{"Proton Mail", Mailboxes, []uint32{62371, 199218, 208172, 209103}, []string{"protonmail.ch", "proton.ch"}, []string{"protonmail.com", "protonmail.ch", "proton.me", "pm.me"}},
	{"GMX and WEB.DE", Mailboxes, nil, []string{"gmx.net", "web.de", "mail.com"}, []string{"gmx.net", "gmx.de", "web.de", "mail.com"}},
	{"Yandex", Mailboxes, []uint32{13238}, []string{"yandex.net", "yandex.ru"}, []string{"yandex.ru", "yandex.com", "ya.ru"}},
	{"Mail.ru", Mailboxes, []uint32{47764}, []string{"mail.ru"}, []string{"mail.ru", "bk.ru", "inbox.ru", "list.ru"}},
	{"Tuta", Mailboxes, []uint32{210909}, []string{"tutanota.de", "tuta.com"}, []string{"tutanota.com", "tutanota.de", "tuta.com", "tuta.io"}},
	{"Posteo", Mailboxes, []uint32{201681}, []string{"posteo.de"}, []string{"posteo.de", "posteo.net"}},
	{"mailbox.org", Mailboxes, []uint32{199118}, []string{"mailbox.org"}, []string{"mailbox.org"}},
	{"Runbox", Mailboxes, nil, []string{"runbox.com"}, []string{"runbox.com"}},
	{"Migadu", Mailboxes, nil, []string{"migadu.com"}, []string{"migadu.com"}},
	{"T-Online", Mailboxes, nil, []string{"t-online.de"}, []string{"t-online.de", "magenta.de"}},
	{"NetEase", Mailboxes, []uint32{45062}, []string{"netease.com", "163.com", "126.com"}, []string{"163.com", "126.com", "yeah.net"}},
	{"Tencent QQ Mail", Mailboxes, nil, []string{"qq.com"}, []string{"qq.com", "foxmail.com"}},
}

// marketing services send newsletters and campaigns.
var marketing = []Sender{
	{"Mailchimp", Marketing, []uint32{14782}, []string{"mcsv.net", "rsgsv.net", "mcdlv.net"}, []string{"mcsv.net", "mcdlv.net", "rsgsv.net", "mailchimpapp.net", "mailchimp.com"}},
	{"Brevo", Marketing, []uint32{200484}, []string{"sendinblue.com", "brevo.com", "mailin.fr"}, []string{"sendinblue.com", "brevo.com", "brevosend.com", "mailin.fr"}},
	{"Campaign Monitor", Marketing, []uint32{55819}, []string{"createsend.com", "cmail19.com", "cmail20.com"}, []string{"createsend.com", "cmail19.com", "cmail20.com"}},
	{"Constant Contact", Marketing, []uint32{40444}, []string{"constantcontact.com", "confirmedcc.com", "ccsend.com"}, []string{"constantcontact.com", "ccsend.com"}},
	{"Klaviyo", Marketing, nil, []string{"klaviyomail.com"}, []string{"klaviyomail.com", "klaviyo.com"}},
	{"ActiveCampaign", Marketing, nil, []string{"emsd1.com", "acems1.com"}, []string{"emsd1.com", "acems1.com", "activecampaign.com"}},
	{"GetResponse", Marketing, []uint32{46469, 198881, 207296}, []string{"getresponse.com", "getresponse-mail.com"}, []string{"getresponse.com", "getresponse-mail.com"}},
	{"AWeber", Marketing, []uint32{11810}, []string{"aweber.com"}, []string{"aweber.com"}},
	{"MailerLite", Marketing, nil, []string{"mlsend.com", "mailerlite.com"}, []string{"mlsend.com", "mailerlite.com"}},
	{"Salesforce Marketing Cloud", Marketing, []uint32{22606}, []string{"exacttarget.com"}, []string{"exacttarget.com"}},
	{"Adobe Marketo", Marketing, nil, []string{"mktdns.com", "mktomail.com", "marketo.com", "mktroute.com"}, []string{"mktdns.com", "mktomail.com", "marketo.org"}},
	{"Adobe Campaign", Marketing, []uint32{15224}, []string{"neolane.net", "campaign.adobe.com"}, []string{"neolane.net", "campaign.adobe.com"}},
	{"Oracle Responsys", Marketing, nil, []string{"responsys.net", "rsys2.com", "rsys5.net"}, []string{"responsys.net", "rsys2.com"}},
	{"Oracle Eloqua", Marketing, nil, []string{"en25.com", "eloqua.com"}, []string{"en25.com", "eloqua.com"}},
	{"Emarsys", Marketing, []uint32{43511, 199236, 203501}, []string{"emarsys.net", "emsmtp.com"}, []string{"emarsys.net", "emsmtp.com"}},
	{"Cheetah Digital", Marketing, []uint32{53316}, []string{"cheetahmail.com", "chtah.com"}, []string{"cheetahmail.com", "chtah.com"}},
	{"Epsilon", Marketing, []uint32{19137}, []string{"bfi0.com", "epsl1.com"}, []string{"bfi0.com", "epsl1.com"}},
	{"Acoustic Campaign", Marketing, nil, []string{"silverpop.com"}, []string{"silverpop.com"}},
	{"Sailthru", Marketing, []uint32{18877}, []string{"sailthru.com"}, []string{"sailthru.com"}},
	{"Cordial", Marketing, []uint32{401181}, []string{"cordial.com"}, []string{"cordial.com"}},
	{"Listrak", Marketing, []uint32{394396}, []string{"listrak.com"}, []string{"listrak.com", "listrakbi.com"}},
	{"Iterable", Marketing, nil, []string{"iterable.com"}, []string{"iterable.com"}},
	{"Dotdigital", Marketing, nil, []string{"dotmailer.com", "dotdigital.com", "dotmailer-email.com"}, []string{"dotmailer.com", "dotdigital-email.com"}},
	{"CleverReach", Marketing, nil, []string{"cleverreach.com", "crsend.com"}, []string{"cleverreach.com", "crsend.com"}},
	{"Splio", Marketing, []uint32{31688}, []string{"splio.com"}, []string{"splio.com"}},
	{"Spotler", Marketing, []uint32{49509, 51514}, []string{"spotler.com", "mailplus.nl"}, []string{"spotler.com", "mailplus.nl"}},
	{"Substack", Marketing, nil, nil, []string{"substack.com"}},
	{"Kit", Marketing, nil, []string{"convertkit.com"}, []string{"convertkit.com", "convertkit-mail.com"}},
	{"Benchmark Email", Marketing, []uint32{19730}, []string{"bmsend.com", "benchmarkemail.com"}, []string{"bmsend.com", "benchmarkemail.com"}},
}

// transactional services send what other programs hand them.
var transactional = []Sender{
	{"Amazon SES", Transactional, nil, []string{"amazonses.com"}, []string{"amazonses.com"}},
	{"Twilio SendGrid", Transactional, []uint32{11377}, []string{"sendgrid.net", "sendgrid.com"}, []string{"sendgrid.net", "sendgrid.com", "sendgrid.me"}},
	{"Mailgun", Transactional, []uint32{396479}, []string{"mailgun.net", "mailgun.org", "mailgun.us"}, []string{"mailgun.org", "mailgun.net", "mailgun.us", "mailgun.com"}},
	{"Postmark", Transactional, nil, []string{"mtasv.net", "postmarkapp.com"}, []string{"mtasv.net", "postmarkapp.com"}},
	{"SparkPost", Transactional, []uint32{23528}, []string{"sparkpostmail.com", "sparkpostmail1.com", "msgsys.com"}, []string{"sparkpostmail.com", "sparkpostmail1.com", "sparkpostmail2.com"}},
	{"Mailjet", Transactional, []uint32{200069}, []string{"mailjet.com"}, []string{"mailjet.com"}},
	{"Mailchimp Transactional", Transactional, nil, []string{"mandrillapp.com"}, []string{"mandrillapp.com"}},
	{"SMTP2GO", Transactional, nil, []string{"smtp2go.com", "smtpcorp.com"}, []string{"smtp2go.com", "smtpcorp.com", "smtp2go.net"}},
	{"SocketLabs", Transactional, []uint32{53658}, []string{"socketlabs.com"}, []string{"socketlabs.com"}},
	{"Elastic Email", Transactional, nil, []string{"elasticemail.com"}, []string{"elasticemail.com", "bounces.elasticemail.net"}},
	{"Customer.io", Transactional, nil, []string{"customeriomail.com"}, []string{"customeriomail.com", "customer.io"}},
	{"MailerSend", Transactional, nil, []string{"mailersend.net"}, []string{"mailersend.net", "mailersend.com"}},
	{"Resend", Transactional, nil, nil, []string{"resend.com", "resend.dev"}},
	{"Mailtrap", Transactional, nil, []string{"mailtrap.live"}, []string{"mailtrap.live", "mailtrap.io"}},
	{"SendPulse", Transactional, nil, []string{"sendpulse.com"}, []string{"sendpulse.com"}},
}
