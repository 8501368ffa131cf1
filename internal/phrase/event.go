// Package phrase writes numbers and events as people read them: 12,345, "1 message", 97.3 %, and the
// sentence that describes an event. It decides nothing: what the sentences are about is decided by
// packages alert and dnscheck, and where they are shown by package web and those below notify.
package phrase

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// Event describes an event in one sentence.
func Event(e dmarcd.Event) string {
	switch e.Kind {
	case dmarcd.RecordAppeared:
		return e.Domain + " now has a DMARC record."
	case dmarcd.RecordChanged:
		return "The DMARC record of " + e.Domain + " changed."
	case dmarcd.RecordRemoved:
		return e.Domain + " no longer has a DMARC record."
	case dmarcd.PolicyWeakened:
		return fmt.Sprintf("The DMARC policy of %s was weakened from %s to %s.", e.Domain, cmp.Or(e.Before, "no policy"), cmp.Or(e.After, "no policy"))
	case dmarcd.PolicyStrengthened:
		return fmt.Sprintf("The DMARC policy of %s was strengthened from %s to %s.", e.Domain, cmp.Or(e.Before, "no policy"), cmp.Or(e.After, "no policy"))
	case dmarcd.ProofLost:
		return fmt.Sprintf("The DNS no longer shows that %s is yours: its new reports are not counted until it does again.", e.Domain)
	case dmarcd.FindingAppeared:
		return finding(e, "New problem", "with", e.After)
	case dmarcd.FindingResolved:
		return finding(e, "This problem ended", "for", "“"+e.Before+"”")
	case dmarcd.ChecksSuspended:
		return fmt.Sprintf("%s is no longer checked on schedule: %s", e.Domain, e.Reason)
	case dmarcd.HeldReport:
		if e.Messages > 1 {
			return fmt.Sprintf("%s reports about %s are not counted until an editor releases them. The first one is by %s. %s",
				Number(e.Messages), e.Domain, e.Organization, e.Reason)
		}
		return fmt.Sprintf("A report by %s about %s is not counted until an editor releases it. %s", e.Organization, e.Domain, e.Reason)
	case dmarcd.WebhookDisabled:
		return fmt.Sprintf("Channel %s was turned off: %s", e.Webhook, e.Reason)
	case dmarcd.WebhookTest:
		return "This is a test: notifications arrive in this channel."
	case dmarcd.DigestDaily, dmarcd.DigestWeekly, dmarcd.DigestMonthly, dmarcd.DigestManagers:
		return digest(e)
	}
	return detected(e)
}

// finding introduces the text of a finding, which names the domain in most cases.
func finding(e dmarcd.Event, what, of, text string) string {
	if strings.Contains(text, e.Domain) {
		return what + ": " + text
	}
	return what + " " + of + " " + e.Domain + ": " + text
}

// Detail is a fact about an event, with a name for users.
type Detail struct{ Name, Value string }

// Details returns the facts of an event that its sentence does not contain.
func Details(e dmarcd.Event) []Detail {
	summary := Event(e)
	var details []Detail
	for _, d := range []Detail{
		{"Domain", e.Domain}, {"Finding", e.Finding}, {"Reporter", e.Organization}, {"Before", e.Before}, {"After", e.After}, {"Reason", e.Reason},
	} {
		if d.Value != "" && !strings.Contains(summary, d.Value) {
			details = append(details, d)
		}
	}
	return details
}

// detected describes an event that package alert detected, or an event about alerts.
func detected(e dmarcd.Event) string {
	about := cmp.Or(e.SubjectName, e.Subject)
	if e.SubjectClass != "" && !strings.HasSuffix(about, " (yours)") { // which says it already
		about = withClass(about, e.SubjectClass)
	}
	messages := Number(e.Messages)
	switch e.Kind {
	case dmarcd.SenderNew:
		return fmt.Sprintf("New sender of mail from %s: %s sent %s messages on %s, %s of them pass DMARC.", e.Domain, about, messages, Day(e.Day), percent(e.Observed))
	case dmarcd.SenderFailing:
		return fmt.Sprintf("Mail of %s from %s fails DMARC: %s of %s messages passed on %s, usually %s.",
			e.Domain, about, percent(e.Observed), messages, Day(e.Day), percent(e.Usual))
	case dmarcd.SelectorFailing:
		return fmt.Sprintf("DKIM signatures with the key %s no longer verify: %s of %s messages on %s, usually %s.",
			about, percent(e.Observed), messages, Day(e.Day), percent(e.Usual))
	case dmarcd.PassRateDropped:
		return fmt.Sprintf("Less mail of %s passes DMARC: %s of %s messages on %s, usually %s.", e.Domain, percent(e.Observed), messages, Day(e.Day), percent(e.Usual))
	case dmarcd.VolumeSpike:
		return fmt.Sprintf("%s sent %s messages on %s, usually about %s.", e.Domain, messages, Day(e.Day), Number(int64(e.Usual)))
	case dmarcd.SpoofingBurst:
		return fmt.Sprintf("Spoofing of %s: %s messages on %s from senders whose mail never passes DMARC, usually about %s.",
			e.Domain, messages, Day(e.Day), Number(int64(e.Usual)))
	case dmarcd.ReportsStopped:
		if about == "" {
			return fmt.Sprintf("Reports about %s stopped: the last one covers %s.", e.Domain, Day(e.Day))
		}
		return fmt.Sprintf("%s no longer reports about %s: its last report covers %s.", about, e.Domain, Day(e.Day))
	case dmarcd.ReportsUnreadable:
		return fmt.Sprintf("%s reports that arrived on %s could not be read, usually about %s.", messages, Day(e.Day), Number(int64(e.Usual)))
	case dmarcd.ReportsUnverified:
		return fmt.Sprintf("%s of the mail of %s on %s is known only from reports whose sender is not verified, usually %s.",
			percent(e.Observed), e.Domain, Day(e.Day), percent(e.Usual))
	case dmarcd.TLSFailing:
		return fmt.Sprintf("Mail servers fail to deliver to %s over TLS: %s of %s sessions failed on %s, usually %s.",
			e.Domain, percent(e.Observed), messages, Day(e.Day), percent(e.Usual))
	case dmarcd.MailboxFailing:
		return fmt.Sprintf("Mailbox %s is not read: %s", about, e.Reason)
	case dmarcd.TokenExpiring:
		return fmt.Sprintf("Token %s expires on %s. Create another one, and change the program that uses it.", about, Day(e.Day))
	case dmarcd.RecordsRetired:
		return fmt.Sprintf("Records of %s are no longer managed: %s. If the DNS still leads here, replace that by %s.", e.Subject, e.Reason, Day(e.Day))
	case dmarcd.SPFOutdated:
		return fmt.Sprintf("The managed SPF record of %s keeps the addresses that it had. %s", e.Domain, e.Reason)
	case dmarcd.CertificateFailing:
		return fmt.Sprintf("The certificate for the MTA-STS policy of %s could not be renewed. %s", e.Domain, e.Reason)
	case dmarcd.DiskLow:
		return "The disk for received reports is nearly full: " + e.Reason
	case dmarcd.AlertsGrouped:
		return fmt.Sprintf("%s more alerts: %s", messages, e.Reason)
	case dmarcd.AlertTest:
		return "This is a test. Alerts of the team arrive here."
	}
	return string(e.Kind)
}

// withClass adds a class to the name of a sender, which may end with a part in parentheses.
func withClass(name string, class dmarcd.Class) string {
	if part, ok := strings.CutSuffix(name, ")"); ok {
		return part + ", " + string(class) + ")"
	}
	return name + " (" + string(class) + ")"
}

// percent formats a fraction as 97 %. It adds a decimal where rounding would give 0 % or 100 %.
func percent(part float64) string {
	whole := math.Round(part * 100)
	if part > 0 && part < 1 && (whole == 0 || whole == 100) {
		return strconv.FormatFloat(part*100, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(whole, 'f', 0, 64) + " %"
}

// digest describes a digest.
func digest(e dmarcd.Event) string {
	from, to := e.DigestPeriod()
	period := map[dmarcd.EventKind]string{
		dmarcd.DigestDaily: "Daily digest of " + Day(to), dmarcd.DigestWeekly: fmt.Sprintf("Weekly digest of %s to %s", Day(from), Day(to)),
		dmarcd.DigestMonthly: "Monthly digest of " + to.Time().Format("January 2006"), dmarcd.DigestManagers: "Report for managers of " + to.Time().Format("January 2006"),
	}[e.Kind]
	if e.Messages == 0 {
		return period + ": no mail was reported."
	}
	passes := int64(math.Round(e.Observed * float64(e.Messages)))
	return fmt.Sprintf("%s: %s messages, %s of them pass DMARC.", period, Number(e.Messages), Percent(passes, e.Messages))
}
