package dnscheck

import "github.com/dmarcd/dmarcd"

// mxEntries are the findings about where mail to the domain goes.
var mxEntries = []Entry{
	{
		"mx.inconclusive", dmarcd.LevelInfo, 0, "RFC 5321 §5.1",
		"The mail servers of {domain} could not be looked up: {reason}.",
		"Senders with the same problem cannot deliver mail.",
		"Try again. If the problem persists, contact the operator of the name servers.",
	},
	{
		"mx.none", dmarcd.LevelInfo, 1, "RFC 7505 §3",
		"{domain} accepts no mail, but does not declare it: it has no MX record and no address.",
		"Senders retry for days, and replies to mail from {domain} are lost.",
		"If it should not accept mail, publish a null MX record:",
	},
	{
		"mx.implicit", dmarcd.LevelWarning, 2, "RFC 5321 §5.1",
		"{domain} has no MX record, so mail goes to its own address, {addresses}.",
		"That is usually the web server, which does not accept mail.",
		"Publish an MX record with the name of your mail server, or a null MX record if there is none:",
	},
	{
		"mx.null-beside-others", dmarcd.LevelError, 6, "RFC 7505 §3",
		"{domain} has a null MX record next to other MX records.",
		"A null MX means that the domain accepts no mail. Combined with others, delivery fails for some senders.",
		"Remove the null MX record.",
	},
	{
		"mx.alias", dmarcd.LevelWarning, 3, "RFC 2181 §10.3",
		"The mail server {name} of {domain} is an alias (CNAME) of {target}.",
		"An MX record must not point to an alias, and some senders reject it.",
		"Use {target} in the MX record:",
	},
	{
		"mx.dangling", dmarcd.LevelError, 10, "RFC 5321 §5.1",
		"The mail server {name} of {domain} does not exist.",
		"Mail is delayed or lost, and an attacker who takes over that name receives your mail.",
		"Remove the MX record for {name}, or correct the name.",
	},
	{
		"mx.no-address", dmarcd.LevelError, 8, "RFC 5321 §5.1",
		"The mail server {name} of {domain} has no IP address.",
		"No mail can be delivered to it.",
		"Give {name} an address, or remove its MX record.",
	},
	{
		"mx.address-as-name", dmarcd.LevelError, 10, "RFC 5321 §5.1",
		"An MX record of {domain} contains the IP address {name} instead of a host name.",
		"Senders look for a host with that name and find none.",
		"Use a host name in the MX record, and give that host the address.",
	},
}

// mtastsEntries are the findings about MTA-STS.
var mtastsEntries = []Entry{
	{
		"mta-sts.inconclusive", dmarcd.LevelInfo, 0, "RFC 8461 §3.1",
		"The MTA-STS record of {domain} could not be looked up: {reason}.",
		"The check cannot tell whether mail to {domain} is protected in transit.",
		"Try again.",
	},
	{
		"mta-sts.missing", dmarcd.LevelInfo, 3, "RFC 8461 §3.1",
		"{domain} has no MTA-STS policy.",
		"An attacker on the network path can disable encryption and read mail to your servers.",
		"Serve a policy in testing mode at https://mta-sts.{domain}/.well-known/mta-sts.txt, then publish:",
	},
	{
		"mta-sts.multiple-records", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"_mta-sts.{domain} has {count} MTA-STS records.",
		"Senders ignore all of them.",
		"Remove all but one.",
	},
	{
		"mta-sts.invalid-record", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"The MTA-STS record of {domain} is invalid: {flaw}.",
		"Senders ignore it.",
		"Publish a record like this, with your own id:",
	},
	{
		"mta-sts.near-miss", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"The TXT record at _mta-sts.{domain} resembles an MTA-STS record but is invalid: {text}",
		"Senders ignore it, so there is no policy.",
		"Publish a record like this, with your own id:",
	},
	{
		"mta-sts.dangling-alias", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"_mta-sts.{domain} is an alias (CNAME) of {text}, which has no MTA-STS record.",
		"Senders find no policy, and an attacker who takes over that name can set one.",
		"Remove the alias, or have the record published there.",
	},
	{
		"mta-sts.unreachable", dmarcd.LevelWarning, 3, "RFC 8461 §3.3",
		"The MTA-STS policy of {domain} could not be downloaded: {reason}.",
		"Senders without a cached policy deliver mail without protection.",
		"Serve the policy at https://mta-sts.{domain}/.well-known/mta-sts.txt with a valid certificate.",
	},
	{
		"mta-sts.no-host", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The policy host mta-sts.{domain} has no IP address.",
		"Senders find no MTA-STS policy and deliver mail without protection.",
		"Publish an address for mta-sts.{domain} and serve the policy there, or remove the record at _mta-sts.{domain}.",
	},
	{
		"mta-sts.bad-certificate", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The certificate of https://mta-sts.{domain} is invalid: {reason}.",
		"Senders ignore the policy.",
		"Install a certificate for mta-sts.{domain} from a public certificate authority.",
	},
	{
		"mta-sts.certificate-expires", dmarcd.LevelWarning, 1, "RFC 8461 §3.3",
		"The certificate of https://mta-sts.{domain} expires on {text}.",
		"After that, senders ignore the policy.",
		"Renew the certificate of mta-sts.{domain}, and check why it was not renewed automatically.",
	},
	{
		"mta-sts.redirect", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The URL of the MTA-STS policy of {domain} redirects to {text}.",
		"Senders must not follow redirects, so there is no policy.",
		"Serve the policy itself at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.bad-status", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The web server returns status {count} instead of the MTA-STS policy of {domain}.",
		"Senders accept only status 200, so there is no policy.",
		"Serve the policy at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.invalid-policy", dmarcd.LevelError, 5, "RFC 8461 §3.2",
		"The MTA-STS policy of {domain} is invalid: {flaw}.",
		"Senders ignore the whole policy.",
		"Correct the file at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.media-type", dmarcd.LevelWarning, 1, "RFC 8461 §3.3",
		"The MTA-STS policy of {domain} is served as {text} instead of text/plain.",
		"Strict senders ignore it.",
		"Configure the web server to send Content-Type: text/plain.",
	},
	{
		"mta-sts.mx-not-covered", dmarcd.LevelError, 8, "RFC 8461 §4.1",
		"The MTA-STS policy of {domain} does not list the mail server {name}.",
		"In enforce mode, senders do not deliver to it, so mail is delayed or lost.",
		"Add the line mx: {name} to the policy, then change the id in the record.",
	},
	{
		"mta-sts.pattern-unused", dmarcd.LevelInfo, 0, "RFC 8461 §4.1",
		"The MTA-STS policy of {domain} lists {name}, which is not one of its mail servers.",
		"An attacker who can spoof DNS answers could redirect your mail there.",
		"If the server is no longer in use, remove the line.",
	},
	{
		"mta-sts.short-max-age", dmarcd.LevelWarning, 1, "RFC 8461 §3.2",
		"The MTA-STS policy of {domain} is valid for only {count} seconds (max_age).",
		"An attacker only has to block it for that long to disable the protection.",
		"Set max_age to several weeks, such as 2419200.",
	},
	{
		"mta-sts.testing", dmarcd.LevelInfo, 1, "RFC 8461 §5",
		"The MTA-STS policy of {domain} is in testing mode.",
		"Senders report failures, but still deliver without protection.",
		"When the TLS reports show no failures, set mode: enforce and change the id in the record.",
	},
	{
		"mta-sts.withdrawn", dmarcd.LevelInfo, 3, "RFC 8461 §5",
		"The MTA-STS policy of {domain} is in mode none.",
		"This mode withdraws the protection.",
		"If this is not intended, set mode: enforce and change the id in the record.",
	},
	{
		"mta-sts.untidy", dmarcd.LevelInfo, 0, "RFC 8461 §3.1",
		"In the MTA-STS configuration of {domain}, {flaw}.",
		"Most senders ignore this, but some may reject it.",
		"Correct it, or remove it.",
	},
	{
		"mta-sts.enforced", dmarcd.LevelGood, 0, "RFC 8461 §5",
		"{domain} has an enforced MTA-STS policy that covers all its mail servers.",
		"Senders deliver over verified encryption only.",
		"",
	},
}

// tlsrptEntries are the findings about TLS reports.
var tlsrptEntries = []Entry{
	{
		"tls-rpt.inconclusive", dmarcd.LevelInfo, 0, "RFC 8460 §3",
		"The TLS-RPT record of {domain} could not be looked up: {reason}.",
		"The check cannot tell whether {domain} requests TLS reports.",
		"Try again.",
	},
	{
		"tls-rpt.missing", dmarcd.LevelInfo, 2, "RFC 8460 §3",
		"{domain} does not request TLS reports.",
		"You cannot see when senders fail to encrypt mail to you.",
		"Publish:",
	},
	{
		"tls-rpt.multiple-records", dmarcd.LevelError, 2, "RFC 8460 §3",
		"_smtp._tls.{domain} has {count} TLS-RPT records.",
		"Reporters ignore all of them.",
		"Remove all but one.",
	},
	{
		"tls-rpt.invalid-record", dmarcd.LevelError, 2, "RFC 8460 §3",
		"The TLS-RPT record of {domain} is invalid: {flaw}.",
		"Reporters may ignore it and send no reports.",
		"Publish:",
	},
	{
		"tls-rpt.near-miss", dmarcd.LevelError, 2, "RFC 8460 §3",
		"The TXT record at _smtp._tls.{domain} resembles a TLS-RPT record but is invalid: {text}",
		"Reporters ignore it.",
		"Publish:",
	},
	{
		"tls-rpt.dangling-alias", dmarcd.LevelError, 2, "RFC 8460 §3",
		"_smtp._tls.{domain} is an alias (CNAME) of {text}, which has no TLS-RPT record.",
		"Reporters find no record, and an attacker who takes over that name receives your reports.",
		"Remove the alias, or have the record published there.",
	},
	{
		"tls-rpt.reports-elsewhere", dmarcd.LevelWarning, 2, "RFC 8460 §3",
		"The TLS-RPT record of {domain} does not send reports to {wanted}.",
		"This server receives no data about failed encryption.",
		"Add the address:",
	},
	{
		"tls-rpt.untidy", dmarcd.LevelInfo, 0, "RFC 8460 §3",
		"In the TLS-RPT record of {domain}, {flaw}.",
		"Most reporters ignore this, but some may reject it.",
		"Correct it, or remove it.",
	},
}

// daneEntries are the findings about DANE.
var daneEntries = []Entry{
	{
		"dane.inconclusive", dmarcd.LevelInfo, 0, "RFC 7672 §2.1",
		"The TLSA records of the mail servers of {domain} could not be looked up: {reason}.",
		"Senders that use DANE do not deliver mail in that case.",
		"Try again. If the problem persists, contact the operator of the name servers.",
	},
	{
		"dane.unusable-record", dmarcd.LevelError, 3, "RFC 7672 §3.1",
		"A TLSA record of {at} is unusable because {flaw}: {text}",
		"Senders ignore it.",
		"Publish a 3 1 1 record with the SHA-256 of the server's public key.",
	},
	{
		"dane.no-usable-record", dmarcd.LevelError, 4, "RFC 7672 §2.2",
		"None of the TLSA records of {at} is usable.",
		"Senders require encryption, but cannot authenticate the server.",
		"Publish a 3 1 1 record with the SHA-256 of the server's public key.",
	},
	{
		"dane.without-dnssec", dmarcd.LevelWarning, 2, "RFC 7672 §2.1.3",
		"{at} has TLSA records that are not protected by DNSSEC.",
		"Senders ignore them.",
		"Sign the zone of {at}, or remove the records.",
	},
	{
		"dane.mx-without-dnssec", dmarcd.LevelWarning, 2, "RFC 7672 §2.2.1",
		"{at} has TLSA records, but the MX records of {domain} are not protected by DNSSEC.",
		"An attacker can substitute another mail server, so the TLSA records offer no protection.",
		"Sign the zone of {domain}.",
	},
	{
		"dane.missing-for-host", dmarcd.LevelWarning, 2, "RFC 7672 §2.2",
		"{at} has no TLSA records, unlike other mail servers of {domain}.",
		"An attacker can direct senders to the unprotected server.",
		"Publish TLSA records for {at} too.",
	},
	{
		"dane.single-record", dmarcd.LevelInfo, 0, "RFC 7671 §8.1",
		"{at} has only one usable TLSA record.",
		"If the certificate changes before a second record has propagated, mail is not delivered.",
		"Publish the record for the next key before you use it.",
	},
	{
		"dane.too-many-hosts", dmarcd.LevelInfo, 0, "RFC 7672 §2.2",
		"{domain} has more than twenty mail servers; only the first twenty were checked.",
		"The TLSA records of the others are unknown.",
		"",
	},
	{
		"dane.no-match", dmarcd.LevelError, 6, "RFC 7672 §3",
		"The certificate of {at} does not match its TLSA records: {flaw}.",
		"Senders that use DANE do not deliver mail to it.",
		"Publish a TLSA record for the current certificate.",
	},
	{
		"dane.protected", dmarcd.LevelGood, 0, "RFC 7672 §2.2",
		"Senders can authenticate all mail servers of {domain} with DANE.",
		"Mail to {domain} is delivered over verified encryption.",
		"",
	},
}

// starttlsEntries are the findings about the certificates of mail servers.
var starttlsEntries = []Entry{
	{
		"starttls.certificate-expires", dmarcd.LevelWarning, 1, "RFC 8461 §4.2",
		"The certificate of the mail server {at} expires on {text}.",
		"After that, senders that require a valid certificate, as MTA-STS does, do not deliver mail to it.",
		"Renew the certificate of {at}, and check why it was not renewed automatically.",
	},
	{
		"starttls.certificate-expired", dmarcd.LevelWarning, 2, "RFC 8461 §4.2",
		"The certificate of the mail server {at} expired on {text}.",
		"Senders that require a valid certificate, as MTA-STS does, do not deliver mail to it.",
		"Renew the certificate of {at}, and check why it was not renewed automatically.",
	},
}

// dnssecEntries are the findings about DNSSEC.
var dnssecEntries = []Entry{
	{
		"dnssec.inconclusive", dmarcd.LevelInfo, 0, "RFC 4035 §5",
		"The DNSSEC status of {domain} could not be looked up: {reason}.",
		"A validating resolver may have rejected the answer because of an invalid signature.",
		"Try again. If the problem persists, check the signatures of the zone.",
	},
	{
		"dnssec.unsigned", dmarcd.LevelInfo, 2, "RFC 4035 §2",
		"The zone {zone} is not signed with DNSSEC.",
		"An attacker who can spoof DNS answers can replace every record in this check.",
		"Enable DNSSEC at your DNS provider, then add the DS record at your registrar.",
	},
	{
		"dnssec.undelegated", dmarcd.LevelWarning, 2, "RFC 4035 §2.4",
		"The zone {zone} has DNSSEC keys, but no DS record in its parent zone.",
		"Resolvers do not validate the signatures, so they offer no protection.",
		"Add the DS record at your registrar.",
	},
	{
		"dnssec.broken", dmarcd.LevelError, 30, "RFC 4035 §5",
		"The parent zone has a DS record for {zone}, but the zone has no DNSSEC keys.",
		"Validating resolvers reject every answer, so mail and websites of {domain} are unreachable.",
		"Remove the DS record at your registrar, or sign the zone again.",
	},
	{
		"dnssec.weak-algorithm", dmarcd.LevelWarning, 2, "RFC 8624 §3.1",
		"The zone {zone} is signed with a deprecated algorithm: {names}.",
		"Resolvers are dropping support for it and treat the zone as unsigned.",
		"Sign with ECDSA P-256 (algorithm 13) and a SHA-256 digest.",
	},
	{
		"dnssec.unvalidated", dmarcd.LevelInfo, 0, "RFC 4035 §5",
		"The zone {zone} is signed, but the configured resolver does not report DNSSEC validation.",
		"The check cannot tell whether the signatures are valid.",
		"Use a validating resolver (DMARCD_DNS).",
	},
	{
		"dnssec.signed", dmarcd.LevelGood, 0, "RFC 4035 §5",
		"The zone {zone} is signed, and its signatures are valid.",
		"Its records cannot be spoofed in transit.",
		"",
	},
}
