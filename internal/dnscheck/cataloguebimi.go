package dnscheck

import "github.com/dmarcd/dmarcd"

// bimiEntries are the findings about the logo beside mails.
var bimiEntries = []Entry{
	{
		"bimi.inconclusive", dmarcd.LevelInfo, 0, "BIMI §7.2",
		"The BIMI record of {domain}, or what it leads to, could not be looked at: {reason}.",
		"Mailbox providers that see the same show no logo.",
		"Try again.",
	},
	{
		"bimi.multiple-records", dmarcd.LevelWarning, 1, "BIMI §7.2",
		"default._bimi.{domain} holds several BIMI records.",
		"Mailbox providers use none of them.",
		"Remove all but one.",
	},
	{
		"bimi.invalid-record", dmarcd.LevelWarning, 1, "BIMI §4.3",
		"The BIMI record of {domain} is not valid: {flaw}.",
		"Mailbox providers show no logo.",
		"Correct the record, or remove it.",
	},
	{
		"bimi.ignored-part", dmarcd.LevelInfo, 0, "BIMI §4.3",
		"In the BIMI record of {domain}, {flaw}.",
		"Mailbox providers pass over it.",
		"Correct it, or remove it.",
	},
	{
		"bimi.no-evidence", dmarcd.LevelInfo, 0, "BIMI §4.3",
		"The BIMI record of {domain} names no certificate (a).",
		"Most mailbox providers show a logo only with a mark certificate (VMC or CMC).",
		"Order a mark certificate and name its address by a=.",
	},
	{
		"bimi.policy", dmarcd.LevelWarning, 1, "BIMI §7.1",
		"{domain} has a BIMI record, but {flaw}.",
		"Mailbox providers show no logo unless forged mail is kept out.",
		"Raise the DMARC policy to quarantine or reject, for subdomains too.",
	},
	{
		"bimi.image", dmarcd.LevelWarning, 1, "BIMI §6",
		"The logo of {domain} cannot be used: {flaw}.",
		"Mailbox providers show no logo.",
		"Save it as SVG Tiny PS (version 1.2, baseProfile tiny-ps, with a title, below 32 KB).",
	},
	{
		"bimi.image-shape", dmarcd.LevelInfo, 0, "BIMI §6",
		"The logo of {domain} could be better: {flaw}.",
		"Mailbox providers cut it to a square or a circle.",
		"Save it as a square, with a short title.",
	},
	{
		"bimi.fetch", dmarcd.LevelWarning, 1, "BIMI §6",
		"What the BIMI record of {domain} leads to cannot be fetched: {flaw}.",
		"Mailbox providers show no logo.",
		"Serve the file over HTTPS with a valid certificate and the right media type.",
	},
	{
		"bimi.evidence", dmarcd.LevelWarning, 1, "BIMI §6",
		"The mark certificate of {domain} is not in order: {flaw}.",
		"Mailbox providers that ask for a certificate show no logo.",
		"Serve the certificates as the authority sent them, the mark certificate first, or order a new one.",
	},
}
