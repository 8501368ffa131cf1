package dnscheck

import "github.com/dmarcd/dmarcd"

// bimiEntries are the findings about the logo beside mails.
var bimiEntries = []Entry{
	{
		"bimi.inconclusive", dmarcd.LevelInfo, 0, "BIMI §7.2",
		"The BIMI record of {domain}, or a file it refers to, could not be retrieved: {reason}.",
		"Mailbox providers with the same problem show no logo.",
		"Try again.",
	},
	{
		"bimi.multiple-records", dmarcd.LevelWarning, 1, "BIMI §7.2",
		"default._bimi.{domain} has several BIMI records.",
		"Mailbox providers use none of them.",
		"Remove all but one.",
	},
	{
		"bimi.invalid-record", dmarcd.LevelWarning, 1, "BIMI §4.3",
		"The BIMI record of {domain} is invalid: {flaw}.",
		"Mailbox providers show no logo.",
		"Correct the record, or remove it.",
	},
	{
		"bimi.ignored-part", dmarcd.LevelInfo, 0, "BIMI §4.3",
		"In the BIMI record of {domain}, {flaw}.",
		"Mailbox providers ignore it.",
		"Correct it, or remove it.",
	},
	{
		"bimi.no-evidence", dmarcd.LevelInfo, 0, "BIMI §4.3",
		"The BIMI record of {domain} has no certificate (a).",
		"Most mailbox providers show a logo only with a mark certificate (VMC or CMC).",
		"Order a mark certificate and add its URL with a=.",
	},
	{
		"bimi.policy", dmarcd.LevelWarning, 1, "BIMI §7.1",
		"{domain} has a BIMI record, but {flaw}.",
		"Mailbox providers show a logo only for domains with an enforced DMARC policy.",
		"Raise the DMARC policy to quarantine or reject, for subdomains too.",
	},
	{
		"bimi.image", dmarcd.LevelWarning, 1, "BIMI §6",
		"The logo of {domain} is invalid: {flaw}.",
		"Mailbox providers show no logo.",
		"Save it as SVG Tiny PS (version 1.2, baseProfile tiny-ps, with a title, below 32 KB).",
	},
	{
		"bimi.image-shape", dmarcd.LevelInfo, 0, "BIMI §6",
		"The logo of {domain} may display badly: {flaw}.",
		"Mailbox providers crop it to a square or a circle.",
		"Save it as a square, with a short title.",
	},
	{
		"bimi.fetch", dmarcd.LevelWarning, 1, "BIMI §6",
		"A file that the BIMI record of {domain} refers to could not be downloaded: {flaw}.",
		"Mailbox providers show no logo.",
		"Serve the file over HTTPS with a valid certificate and the correct media type.",
	},
	{
		"bimi.evidence", dmarcd.LevelWarning, 1, "BIMI §6",
		"The mark certificate of {domain} has a problem: {flaw}.",
		"Mailbox providers that require a certificate show no logo.",
		"Serve the certificates as issued, with the mark certificate first, or order a new one.",
	},
}
