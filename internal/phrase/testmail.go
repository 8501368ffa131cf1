package phrase

import (
	"github.com/dmarcd/dmarcd"
)

// pass is the result of a method that passes.
const pass = "pass"

// TestMail says in a sentence whether a test mail passes DMARC, and why.
func TestMail(m dmarcd.TestMail) string {
	switch {
	case m.Problem != "":
		return "This mail cannot be judged. " + m.Problem
	case m.DMARC == pass:
		by := "SPF passes and is aligned"
		for _, s := range m.Signatures {
			if s.Result == pass && s.Aligned {
				by = "DKIM passes and is aligned"
			}
		}
		return "This mail passes DMARC: " + by + " with " + m.From + "."
	case m.DMARC == "fail":
		return "This mail fails DMARC: neither SPF nor DKIM passes with a domain that is aligned with " + m.From + "."
	case m.DMARC == "none":
		return m.From + " has no DMARC record, so nothing protects it."
	case m.Relayed:
		return "No DKIM signature is aligned with " + m.From + ", and SPF cannot be judged here."
	}
	return "It is unknown whether this mail passes DMARC: the DNS did not answer, or the DMARC record is invalid."
}

// TestAdvice says what to change so that mail like a test mail passes by both methods, in
// sentences; nothing if there is nothing to change.
func TestAdvice(m dmarcd.TestMail) (list []string) {
	if m.Problem != "" {
		return nil
	}
	if m.RecordDomain == "" {
		list = append(list, "Publish a DMARC record for "+m.From+".")
	}
	return append(append(list, dkimAdvice(m)...), spfAdvice(m)...)
}

func dkimAdvice(m dmarcd.TestMail) []string {
	for _, s := range m.Signatures {
		if s.Aligned && s.Result == pass {
			return nil
		}
	}
	for _, s := range m.Signatures {
		if s.Aligned {
			return []string{"Fix the DKIM signature of " + s.Domain + ": " + s.Reason + "."}
		}
	}
	if len(m.Signatures) > 0 {
		return []string{"Ask the service that signs with " + m.Signatures[0].Domain + " to sign with " + m.From + " instead. It names the DKIM records to publish."}
	}
	return []string{"Turn on DKIM signing with " + m.From + " on the server that sends this mail."}
}

func spfAdvice(m dmarcd.TestMail) []string {
	switch {
	case m.Relayed || m.SPF == "temperror":
		return nil
	case m.SPF == pass && m.SPFAligned:
		return nil
	case m.SPF == pass:
		return []string{"Use an envelope sender (return path) in " + m.From + ". SPF passes, but for " + m.SPFDomain + "."}
	case m.SPF == "none":
		return []string{"Publish an SPF record for " + m.SPFDomain + " that lists " + m.Client.String() + "."}
	case m.SPF == "permerror":
		return []string{"Fix the SPF record of " + m.SPFDomain + ": receivers cannot evaluate it."}
	}
	return []string{"Add " + m.Client.String() + " to the SPF record of " + m.SPFDomain + ", if this is your server."}
}
