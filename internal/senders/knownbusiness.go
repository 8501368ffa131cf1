package senders

// crmAndSupport services write to a company's customers in its name.
var crmAndSupport = []Sender{
	{"Salesforce", CRM, []uint32{14340}, []string{"salesforce.com"}, []string{"salesforce.com"}},
	{"HubSpot", CRM, nil, []string{"hubspotemail.net", "hubspot.com", "hs-send.com"}, []string{"hubspotemail.net", "hubspot.com", "hs-send.com", "hubspotstarter.net"}},
	{"Zendesk", CRM, []uint32{21880, 61186}, []string{"zendesk.com", "zdsys.com"}, []string{"zendesk.com", "zdsys.com"}},
	{"Freshworks", CRM, nil, []string{"freshdesk.com", "freshemail.io"}, []string{"freshdesk.com", "freshemail.io", "freshworks.com"}},
	{"Intercom", CRM, nil, []string{"intercom-mail.com"}, []string{"intercom-mail.com", "intercom.io"}},
	{"Help Scout", CRM, nil, []string{"helpscout.net"}, []string{"helpscout.net"}},
	{"Front", CRM, nil, nil, []string{"frontapp.com"}},
	{"Pipedrive", CRM, nil, []string{"pipedrive.com"}, []string{"pipedrive.com"}},
	{"Keap", CRM, nil, []string{"infusionmail.com"}, []string{"infusionmail.com", "infusionsoft.com"}},
	{"Gainsight", CRM, nil, nil, []string{"gainsight.com"}},
}

// businessApplications send as a company because it works with them.
var businessApplications = []Sender{
	{"Atlassian", Business, []uint32{133530}, []string{"atlassian.net"}, []string{"atlassian.net", "atlassian.com"}},
	{"Docusign", Business, []uint32{62856}, []string{"docusign.net"}, []string{"docusign.net", "docusign.com"}},
	{"ServiceNow", Business, []uint32{16839}, []string{"service-now.com"}, []string{"service-now.com", "servicenow.com"}},
	{"Workday", Business, []uint32{18465, 46864}, []string{"myworkday.com", "workday.com"}, []string{"myworkday.com", "workday.com"}},
	{"SAP", Business, []uint32{35039}, []string{"sapsf.com", "sapsf.eu"}, []string{"successfactors.com", "successfactors.eu"}},
	{"Oracle NetSuite", Business, nil, []string{"netsuite.com"}, []string{"netsuite.com"}},
	{"Shopify", Business, []uint32{62679}, []string{"shopify.com", "shopifyemail.com"}, []string{"shopify.com", "shopifyemail.com"}},
	{"Squarespace", Business, []uint32{53831}, []string{"squarespace-mail.com"}, []string{"squarespace-mail.com", "squarespace.com"}},
	{"PayPal", Business, []uint32{17012}, []string{"paypal.com"}, []string{"paypal.com"}},
	{"LinkedIn", Business, []uint32{14413}, []string{"linkedin.com"}, []string{"linkedin.com"}},
	{"GitHub", Business, nil, []string{"github.com", "github.net"}, []string{"github.com"}},
	{"Exclaimer", Business, nil, []string{"exclaimer.net"}, []string{"exclaimer.net"}},
	{"Zuora", Business, []uint32{137194}, []string{"zuora.com"}, []string{"zuora.com"}},
	{"Xero", Business, nil, nil, []string{"xero.com"}},
	{"Stripe", Business, nil, nil, []string{"stripe.com"}},
}

// gateways filter a company's mail, and pass on what it sends.
var gateways = []Sender{
	{"Proofpoint", Gateway, []uint32{13916, 22843, 26211, 52129}, []string{"pphosted.com", "ppe-hosted.com", "proofpoint.com"}, []string{"pphosted.com", "ppe-hosted.com"}},
	{"Mimecast", Gateway, []uint32{30031, 37235, 39588, 42427, 60492, 136792}, []string{"mimecast.com", "mimecast.co.za", "mimecast-offshore.com"}, []string{"mimecast.com", "mimecastprotect.com"}},
	{"Barracuda", Gateway, []uint32{15324}, []string{"barracudanetworks.com", "barracuda.com"}, []string{"barracudanetworks.com"}},
	{"Cisco Secure Email", Gateway, []uint32{16417, 30215, 30238}, []string{"iphmx.com", "ironport.com"}, []string{"iphmx.com"}},
	{"Symantec Email Security", Gateway, []uint32{7583}, []string{"messagelabs.com", "messagelabs.net"}, []string{"messagelabs.com"}},
	{"Trend Micro", Gateway, []uint32{16880}, []string{"trendmicro.com", "trendmicro.eu"}, []string{"trendmicro.com"}},
	{"Sophos Email", Gateway, nil, []string{"sophos.com"}, []string{"sophos.com"}},
	{"Forcepoint", Gateway, []uint32{13448, 44444}, []string{"mailcontrol.com"}, []string{"mailcontrol.com"}},
	{"Trellix", Gateway, []uint32{46484}, []string{"fireeyecloud.com", "fireeyegov.com"}, []string{"fireeyecloud.com"}},
	{"Trustwave", Gateway, []uint32{33151}, []string{"trustwave.com", "mailmarshal.cloud"}, nil},
	{"Hornetsecurity", Gateway, []uint32{401943}, []string{"hornetsecurity.com", "antispameurope.com"}, []string{"hornetsecurity.com"}},
	{"Retarus", Gateway, []uint32{48328}, []string{"retarus.com", "retarus.de", "retarus.net"}, []string{"retarus.com"}},
	{"SpamExperts", Gateway, []uint32{43054}, []string{"antispamcloud.com", "spamexperts.com", "mailspamprotection.com"}, []string{"antispamcloud.com"}},
	{"MailChannels", Gateway, nil, []string{"mailchannels.net"}, []string{"mailchannels.net"}},
	{"Zix and AppRiver", Gateway, []uint32{13380, 53780}, []string{"zixmail.net", "zixcorp.com", "appriver.com", "exghost.com"}, nil},
	{"NoSpamProxy", Gateway, nil, []string{"nospamproxy.com"}, nil},
	{"DuoCircle", Gateway, nil, []string{"duocircle.com", "mailhop.org"}, []string{"duocircle.com"}},
	{"ImprovMX", Gateway, nil, []string{"improvmx.com"}, []string{"improvmx.com"}},
}

// hosting companies send from the web sites and mail servers that they house. Where
// customers have machines of their own, only the hosts of the company's own mail
// service are named.
var hosting = []Sender{
	{"OVHcloud", Hosting, nil, []string{"mail-out.ovh.net", "mail.ovh.net"}, []string{"ovh.net"}},
	{"IONOS", Hosting, nil, []string{"kundenserver.de", "perfora.net", "1and1.com", "ionos.com"}, []string{"kundenserver.de", "perfora.net", "1and1.com"}},
	{"STRATO", Hosting, nil, []string{"rzone.de", "strato.de"}, []string{"strato.de", "strato.com"}},
	{"Hetzner", Hosting, nil, []string{"your-server.de"}, []string{"your-server.de"}},
	{"Infomaniak", Hosting, nil, []string{"infomaniak.ch", "infomaniak.com"}, []string{"infomaniak.ch", "infomaniak.com"}},
	{"Gandi", Hosting, nil, []string{"mail.gandi.net"}, []string{"gandi.net"}},
	{"GoDaddy", Hosting, nil, []string{"secureserver.net"}, []string{"secureserver.net"}},
	{"Rackspace Email", Hosting, nil, []string{"emailsrvr.com"}, []string{"emailsrvr.com"}},
	{"Namecheap", Hosting, nil, []string{"privateemail.com", "registrar-servers.com", "web-hosting.com"}, []string{"privateemail.com"}},
	{"DreamHost", Hosting, nil, []string{"dreamhost.com"}, []string{"dreamhost.com"}},
	{"Bluehost", Hosting, nil, []string{"unifiedlayer.com", "bluehost.com"}, []string{"bluehost.com"}},
	{"Hostinger", Hosting, nil, []string{"hostinger.com", "hostinger.io"}, []string{"hostinger.com"}},
	{"SiteGround", Hosting, nil, []string{"sgvps.net", "siteground.com", "siteground.biz"}, []string{"siteground.com"}},
	{"Aruba", Hosting, nil, []string{"aruba.it"}, []string{"aruba.it", "pec.it"}},
	{"one.com", Hosting, []uint32{51468}, []string{"one.com"}, []string{"one.com"}},
	{"Loopia", Hosting, []uint32{39570}, []string{"loopia.se"}, []string{"loopia.se"}},
	{"TransIP", Hosting, nil, []string{"transip.email", "transip.nl"}, []string{"transip.email", "transip.nl"}},
	{"Combell", Hosting, nil, []string{"combell.com", "register.be"}, []string{"combell.com"}},
	{"ALL-INKL", Hosting, nil, []string{"kasserver.com", "all-inkl.com"}, []string{"kasserver.com"}},
	{"Hostpoint", Hosting, []uint32{29097}, []string{"hostpoint.ch"}, []string{"hostpoint.ch"}},
	{"MXroute", Hosting, []uint32{398810}, []string{"mxrouting.net", "mxroute.com", "mxlogin.com"}, []string{"mxrouting.net", "mxroute.com"}},
	{"Intermedia", Hosting, []uint32{16406}, []string{"intermedia.net", "serverdata.net"}, []string{"intermedia.net", "serverdata.net"}},
	{"Wix", Hosting, []uint32{58182}, nil, []string{"wix.com", "wixemails.com"}},
	{"WordPress.com", Hosting, []uint32{2635}, []string{"wordpress.com", "automattic.com"}, []string{"wordpress.com"}},
}
