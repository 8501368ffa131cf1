package dnscheck

import "github.com/dmarcd/dmarcd"

// mxEntries are the findings about where mail to the domain goes.
var mxEntries = []Entry{
	{
		"mx.inconclusive", dmarcd.LevelInfo, 0, "RFC 5321 §5.1",
		"The mail servers of {domain} could not be looked up: {reason}.",
		"Senders that see the same cannot deliver mail.",
		"Try again; if it stays so, ask whoever runs the name servers.",
	},
	{
		"mx.none", dmarcd.LevelInfo, 1, "RFC 7505 §3",
		"{domain} has no MX record and no address, so that it takes no mail, but does not say so.",
		"Senders keep trying for days, and answers to mail from {domain} are lost.",
		"If it is to take no mail, publish a null MX record:",
	},
	{
		"mx.implicit", dmarcd.LevelWarning, 2, "RFC 5321 §5.1",
		"{domain} has no MX record, so that mail to it goes to its own address, {addresses}.",
		"That is usually the web server, which takes no mail.",
		"Publish an MX record that names the mail server, or a null MX record if there is none:",
	},
	{
		"mx.null-beside-others", dmarcd.LevelError, 6, "RFC 7505 §3",
		"{domain} has a null MX record beside others.",
		"A null MX says that no mail is taken; beside others, some senders fail and some do not.",
		"Remove the null MX record.",
	},
	{
		"mx.alias", dmarcd.LevelWarning, 3, "RFC 2181 §10.3",
		"The mail server {name} of {domain} is an alias (CNAME) of {target}.",
		"An MX record must name a host itself, and some senders refuse an alias.",
		"Name {target} in the MX record:",
	},
	{
		"mx.dangling", dmarcd.LevelError, 10, "RFC 5321 §5.1",
		"The mail server {name} of {domain} does not exist.",
		"Mail is lost or late, and whoever gets hold of that name receives your mail.",
		"Remove the MX record of {name}, or correct the name.",
	},
	{
		"mx.no-address", dmarcd.LevelError, 8, "RFC 5321 §5.1",
		"The mail server {name} of {domain} has no address.",
		"Nothing can be delivered to it.",
		"Give {name} an address, or remove its MX record.",
	},
	{
		"mx.address-as-name", dmarcd.LevelError, 10, "RFC 5321 §5.1",
		"An MX record of {domain} holds the address {name} in the place of a name.",
		"Senders look for a host of that name and find none.",
		"Name a host in the MX record, and give that host the address.",
	},
}

// mtastsEntries are the findings about MTA-STS.
var mtastsEntries = []Entry{
	{
		"mta-sts.inconclusive", dmarcd.LevelInfo, 0, "RFC 8461 §3.1",
		"The MTA-STS record of {domain} could not be looked up: {reason}.",
		"Whether mail to {domain} is protected cannot be told.",
		"Try again.",
	},
	{
		"mta-sts.missing", dmarcd.LevelInfo, 3, "RFC 8461 §3.1",
		"{domain} has no MTA-STS policy.",
		"Somebody between a sender and your mail servers can switch encryption off and read the mail.",
		"Serve a policy at https://mta-sts.{domain}/.well-known/mta-sts.txt that begins in mode testing, then publish:",
	},
	{
		"mta-sts.multiple-records", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"_mta-sts.{domain} holds {count} MTA-STS records.",
		"Senders behave as if there were none.",
		"Remove all but one.",
	},
	{
		"mta-sts.invalid-record", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"The MTA-STS record of {domain} is not valid: {flaw}.",
		"Senders behave as if there were none.",
		"Publish a record of this form, with an id of your own:",
	},
	{
		"mta-sts.near-miss", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"The text at _mta-sts.{domain} looks like an MTA-STS record and is none: {text}",
		"Senders pass over it and behave as if there were no policy.",
		"Publish a record of this form, with an id of your own:",
	},
	{
		"mta-sts.dangling-alias", dmarcd.LevelError, 4, "RFC 8461 §3.1",
		"_mta-sts.{domain} is an alias (CNAME) of {text}, where there is no record.",
		"Senders find no policy, and whoever gets hold of that name sets it.",
		"Remove the alias, or have the record published there.",
	},
	{
		"mta-sts.unreachable", dmarcd.LevelWarning, 3, "RFC 8461 §3.3",
		"The MTA-STS policy of {domain} could not be fetched: {reason}.",
		"Senders that know no earlier policy send without protection.",
		"Serve the policy at https://mta-sts.{domain}/.well-known/mta-sts.txt with a valid certificate.",
	},
	{
		"mta-sts.no-host", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The policy host mta-sts.{domain} has no address.",
		"Senders find no MTA-STS policy and send without protection.",
		"Publish an address for mta-sts.{domain} and serve the policy there, or remove the record at _mta-sts.{domain}.",
	},
	{
		"mta-sts.bad-certificate", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The certificate of https://mta-sts.{domain} is not valid: {reason}.",
		"Senders ignore the policy.",
		"Give the web server a certificate for mta-sts.{domain} from a public authority.",
	},
	{
		"mta-sts.redirect", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The MTA-STS policy of {domain} is answered by a redirect to {text}.",
		"Senders must not follow it, so that there is no policy.",
		"Serve the policy itself at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.bad-status", dmarcd.LevelError, 5, "RFC 8461 §3.3",
		"The web server answers with the status {count} in the place of the MTA-STS policy of {domain}.",
		"Senders take only 200, so that there is no policy.",
		"Serve the policy at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.invalid-policy", dmarcd.LevelError, 5, "RFC 8461 §3.2",
		"The MTA-STS policy of {domain} is not valid: {flaw}.",
		"Senders ignore the whole policy.",
		"Correct the file at https://mta-sts.{domain}/.well-known/mta-sts.txt.",
	},
	{
		"mta-sts.media-type", dmarcd.LevelWarning, 1, "RFC 8461 §3.3",
		"The MTA-STS policy of {domain} is served as {text}, not as text/plain.",
		"Strict senders ignore it.",
		"Let the web server send Content-Type: text/plain.",
	},
	{
		"mta-sts.mx-not-covered", dmarcd.LevelError, 8, "RFC 8461 §4.1",
		"The MTA-STS policy of {domain} does not list the mail server {name}.",
		"In mode enforce senders do not deliver to it, so that mail is late or lost.",
		"Add the line mx: {name} to the policy, then change the id in the record.",
	},
	{
		"mta-sts.pattern-unused", dmarcd.LevelInfo, 0, "RFC 8461 §4.1",
		"The MTA-STS policy of {domain} lists {name}, which is none of its mail servers.",
		"Somebody who can forge DNS answers could send your mail there.",
		"Remove the line if the server is out of use.",
	},
	{
		"mta-sts.short-max-age", dmarcd.LevelWarning, 1, "RFC 8461 §3.2",
		"The MTA-STS policy of {domain} may be kept for {count} seconds only.",
		"An attacker need only block it for that long to switch the protection off.",
		"Set max_age to some weeks, such as 2419200.",
	},
	{
		"mta-sts.testing", dmarcd.LevelInfo, 1, "RFC 8461 §5",
		"The MTA-STS policy of {domain} is in mode testing.",
		"Senders report failures and deliver without protection all the same.",
		"When the TLS reports show no failures, set mode: enforce and change the id in the record.",
	},
	{
		"mta-sts.withdrawn", dmarcd.LevelInfo, 3, "RFC 8461 §5",
		"The MTA-STS policy of {domain} is in mode none.",
		"That withdraws the protection.",
		"If that is not meant to be so, set mode: enforce and change the id in the record.",
	},
	{
		"mta-sts.untidy", dmarcd.LevelInfo, 0, "RFC 8461 §3.1",
		"In the MTA-STS set-up of {domain}, {flaw}.",
		"Senders pass over it, but not all of them need to.",
		"Correct it, or remove it.",
	},
	{
		"mta-sts.enforced", dmarcd.LevelGood, 0, "RFC 8461 §5",
		"{domain} has an MTA-STS policy in mode enforce that covers all its mail servers.",
		"Senders deliver over verified encryption only.",
		"",
	},
}

// tlsrptEntries are the findings about TLS reports.
var tlsrptEntries = []Entry{
	{
		"tls-rpt.inconclusive", dmarcd.LevelInfo, 0, "RFC 8460 §3",
		"The TLS-RPT record of {domain} could not be looked up: {reason}.",
		"Whether TLS reports are asked for cannot be told.",
		"Try again.",
	},
	{
		"tls-rpt.missing", dmarcd.LevelInfo, 2, "RFC 8460 §3",
		"{domain} does not ask for TLS reports.",
		"You never learn that senders fail to encrypt mail to you.",
		"Publish:",
	},
	{
		"tls-rpt.multiple-records", dmarcd.LevelError, 2, "RFC 8460 §3",
		"_smtp._tls.{domain} holds {count} TLS-RPT records.",
		"Reporters behave as if there were none.",
		"Remove all but one.",
	},
	{
		"tls-rpt.invalid-record", dmarcd.LevelError, 2, "RFC 8460 §3",
		"The TLS-RPT record of {domain} is not valid: {flaw}.",
		"Reporters need not send anything.",
		"Publish:",
	},
	{
		"tls-rpt.near-miss", dmarcd.LevelError, 2, "RFC 8460 §3",
		"The text at _smtp._tls.{domain} looks like a TLS-RPT record and is none: {text}",
		"Reporters pass over it.",
		"Publish:",
	},
	{
		"tls-rpt.dangling-alias", dmarcd.LevelError, 2, "RFC 8460 §3",
		"_smtp._tls.{domain} is an alias (CNAME) of {text}, where there is no record.",
		"Reporters find nothing, and whoever gets hold of that name gets your reports.",
		"Remove the alias, or have the record published there.",
	},
	{
		"tls-rpt.reports-elsewhere", dmarcd.LevelWarning, 2, "RFC 8460 §3",
		"The TLS-RPT record of {domain} does not send its reports to {wanted}.",
		"This server learns nothing about failed encryption.",
		"Add the address:",
	},
	{
		"tls-rpt.untidy", dmarcd.LevelInfo, 0, "RFC 8460 §3",
		"In the TLS-RPT record of {domain}, {flaw}.",
		"Reporters pass over it, but not all of them need to.",
		"Correct it, or remove it.",
	},
}

// daneEntries are the findings about DANE.
var daneEntries = []Entry{
	{
		"dane.inconclusive", dmarcd.LevelInfo, 0, "RFC 7672 §2.1",
		"The TLSA records of the mail servers of {domain} could not be looked up: {reason}.",
		"Senders that use DANE hold the mail back in that case.",
		"Try again; if it stays so, ask whoever runs the name servers.",
	},
	{
		"dane.unusable-record", dmarcd.LevelError, 3, "RFC 7672 §3.1",
		"A TLSA record of {at} cannot be used, because {flaw}: {text}",
		"Senders pass over it.",
		"Publish a record of the form 3 1 1 with the SHA-256 of the server's public key.",
	},
	{
		"dane.no-usable-record", dmarcd.LevelError, 4, "RFC 7672 §2.2",
		"None of the TLSA records of {at} can be used.",
		"Senders insist on encryption, but cannot tell who they are talking to.",
		"Publish a record of the form 3 1 1 with the SHA-256 of the server's public key.",
	},
	{
		"dane.without-dnssec", dmarcd.LevelWarning, 2, "RFC 7672 §2.1.3",
		"{at} has TLSA records, but they are not protected by DNSSEC.",
		"Senders ignore them.",
		"Sign the zone of {at}, or remove the records.",
	},
	{
		"dane.mx-without-dnssec", dmarcd.LevelWarning, 2, "RFC 7672 §2.2.1",
		"{at} has TLSA records, but the MX records of {domain} that lead to it are not protected by DNSSEC.",
		"An attacker can name another mail server, so that the records do not help.",
		"Sign the zone of {domain}.",
	},
	{
		"dane.missing-for-host", dmarcd.LevelWarning, 2, "RFC 7672 §2.2",
		"Other mail servers of {domain} have TLSA records, {at} has none.",
		"An attacker can lead senders to the one that is not protected.",
		"Publish TLSA records for {at} too.",
	},
	{
		"dane.single-record", dmarcd.LevelInfo, 0, "RFC 7671 §8.1",
		"{at} has one usable TLSA record.",
		"When the certificate changes before a second record is known everywhere, mail is not delivered.",
		"Publish the record of the next key ahead of its use.",
	},
	{
		"dane.too-many-hosts", dmarcd.LevelInfo, 0, "RFC 7672 §2.2",
		"{domain} has more than twenty mail servers; only the first were looked at.",
		"Nothing is known about the TLSA records of the others.",
		"",
	},
	{
		"dane.no-match", dmarcd.LevelError, 6, "RFC 7672 §3",
		"The certificate of {at} does not fit its TLSA records: {flaw}.",
		"Senders that use DANE do not deliver mail to it.",
		"Publish a TLSA record for the certificate in use.",
	},
	{
		"dane.protected", dmarcd.LevelGood, 0, "RFC 7672 §2.2",
		"Senders can authenticate all mail servers of {domain} by DANE.",
		"Mail to {domain} is delivered over verified encryption.",
		"",
	},
}

// dnssecEntries are the findings about DNSSEC.
var dnssecEntries = []Entry{
	{
		"dnssec.inconclusive", dmarcd.LevelInfo, 0, "RFC 4035 §5",
		"Whether the zone of {domain} is signed could not be looked up: {reason}.",
		"Resolvers that validate may have refused the answer because a signature is broken.",
		"Try again; if it stays so, have the signatures of the zone checked.",
	},
	{
		"dnssec.unsigned", dmarcd.LevelInfo, 2, "RFC 4035 §2",
		"The zone {zone} is not signed with DNSSEC.",
		"Somebody who can forge DNS answers can replace every record that this check looks at.",
		"Switch on DNSSEC at your DNS provider, then enter the DS record at your registrar.",
	},
	{
		"dnssec.undelegated", dmarcd.LevelWarning, 2, "RFC 4035 §2.4",
		"The zone {zone} has DNSSEC keys, but no DS record above it.",
		"Nobody checks the signatures, so that they protect nothing.",
		"Enter the DS record at your registrar.",
	},
	{
		"dnssec.broken", dmarcd.LevelError, 30, "RFC 4035 §5",
		"There is a DS record for {zone}, but the zone has no DNSSEC keys.",
		"Resolvers that validate refuse every answer, so that mail and web pages of {domain} cannot be reached.",
		"Remove the DS record at your registrar, or sign the zone again.",
	},
	{
		"dnssec.weak-algorithm", dmarcd.LevelWarning, 2, "RFC 8624 §3.1",
		"The zone {zone} is signed with an algorithm that is no longer to be used: {names}.",
		"Resolvers stop to believe such signatures and treat the zone as unsigned.",
		"Sign with ECDSA P-256 (algorithm 13) and a SHA-256 digest.",
	},
	{
		"dnssec.unvalidated", dmarcd.LevelInfo, 0, "RFC 4035 §5",
		"The zone {zone} is signed, but the resolver that was asked does not say that it checked the signatures.",
		"Whether they are right cannot be told.",
		"Ask a resolver that validates (DMARCD_DNS).",
	},
	{
		"dnssec.signed", dmarcd.LevelGood, 0, "RFC 4035 §5",
		"The zone {zone} is signed, and the signatures are right.",
		"Its records cannot be forged on their way.",
		"",
	},
}
