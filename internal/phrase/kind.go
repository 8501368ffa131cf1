package phrase

import (
	"strings"

	"github.com/dmarcd/dmarcd"
)

// KindGroup is a group of kinds of events that users choose from.
type KindGroup struct {
	Title string
	Kinds []dmarcd.EventKind
}

// KindGroups returns the kinds of events that a team can be notified of, grouped by what they are
// about. Tests and groups of events are left out: they follow from the others.
func KindGroups() []KindGroup {
	return []KindGroup{
		{"Alerts", []dmarcd.EventKind{
			dmarcd.SenderFailing, dmarcd.SelectorFailing, dmarcd.PassRateDropped, dmarcd.SenderNew, dmarcd.SpoofingBurst, dmarcd.VolumeSpike, dmarcd.TLSFailing,
		}},
		{"DNS changes", []dmarcd.EventKind{
			dmarcd.RecordRemoved, dmarcd.RecordChanged, dmarcd.RecordAppeared, dmarcd.RecordsRetired, dmarcd.SPFOutdated, dmarcd.PolicyWeakened, dmarcd.PolicyStrengthened, dmarcd.ProofLost, dmarcd.FindingAppeared, dmarcd.FindingResolved,
		}},
		{"Reports", []dmarcd.EventKind{dmarcd.ReportsStopped, dmarcd.ReportsUnreadable, dmarcd.ReportsUnverified, dmarcd.HeldReport}},
		{"Operation", []dmarcd.EventKind{dmarcd.MailboxFailing, dmarcd.TokenExpiring, dmarcd.WebhookDisabled, dmarcd.ChecksSuspended, dmarcd.CertificateFailing, dmarcd.DiskLow}},
		{"Digests", dmarcd.Digests()},
	}
}

// kindTexts are the name of each kind, and what happened in one line.
var kindTexts = map[dmarcd.EventKind][2]string{
	dmarcd.SenderFailing:      {"Sender fails", "Mail of one of your senders no longer passes DMARC."},
	dmarcd.SelectorFailing:    {"DKIM key fails", "Signatures with one of your DKIM keys no longer verify."},
	dmarcd.PassRateDropped:    {"Pass rate drops", "Much less of a domain's own mail passes DMARC than usual."},
	dmarcd.SenderNew:          {"New sender", "A service or server sends mail of a domain for the first time."},
	dmarcd.SpoofingBurst:      {"Spoofing rises", "Far more mail than usual spoofs a domain."},
	dmarcd.VolumeSpike:        {"Volume rises", "A domain sends far more mail than usual."},
	dmarcd.TLSFailing:         {"TLS fails", "Mail servers fail to deliver to a domain over TLS."},
	dmarcd.RecordRemoved:      {"DMARC record removed", "A domain no longer has a DMARC record."},
	dmarcd.RecordChanged:      {"DMARC record changed", "The DMARC record of a domain has new tags or values."},
	dmarcd.RecordAppeared:     {"DMARC record published", "A domain has a DMARC record now."},
	dmarcd.RecordsRetired:     {"Managed records end", "Records of a domain are no longer managed. Their names answer for 90 more days."},
	dmarcd.SPFOutdated:        {"SPF not up to date", "A managed SPF record keeps older addresses: a lookup fails, or a change waits for a person."},
	dmarcd.PolicyWeakened:     {"Policy weakened", "A domain asks receivers for less protection, such as none instead of reject."},
	dmarcd.PolicyStrengthened: {"Policy strengthened", "A domain asks receivers for more protection."},
	dmarcd.ProofLost:          {"Proof lost", "DNS no longer shows that a domain is yours, so its mail is not counted."},
	dmarcd.FindingAppeared:    {"New DNS problem", "A check finds a problem, such as too many SPF lookups or a certificate that expires."},
	dmarcd.FindingResolved:    {"DNS problem resolved", "A check no longer finds a problem."},
	dmarcd.ReportsStopped:     {"Reports stop", "A receiver, or all of them, no longer report about a domain."},
	dmarcd.ReportsUnreadable:  {"Reports rejected", "Many reports that arrive cannot be read."},
	dmarcd.ReportsUnverified:  {"Reports unverified", "Much of the mail is only in reports whose sender is not verified."},
	dmarcd.HeldReport:         {"Held report", "A report looks wrong, and is not counted until an editor releases it."},
	dmarcd.MailboxFailing:     {"Mailbox fails", "A mailbox cannot be read for an hour."},
	dmarcd.TokenExpiring:      {"Token expires", "A token that is in use expires in two weeks."},
	dmarcd.WebhookDisabled:    {"Channel turned off", "A channel failed for five days. The other channels get this."},
	dmarcd.ChecksSuspended:    {"Checks suspended", "A domain is no longer checked, because its checks crash."},
	dmarcd.CertificateFailing: {"Certificate not renewed", "The certificate for a managed MTA-STS policy could not be renewed."},
	dmarcd.DiskLow:            {"Disk nearly full", "The disk of this installation has little space left. Only the team default gets this."},
	dmarcd.DigestDaily:        {"Daily digest", "The figures of a day, at noon UTC on the next one."},
	dmarcd.DigestWeekly:       {"Weekly digest", "The figures of a week, on Monday."},
	dmarcd.DigestMonthly:      {"Monthly digest", "The figures of a month, on the first day of the next one."},
	dmarcd.DigestManagers:     {"Report for managers", "A month in words for managers, on the first day of the next one. Emails contain it as a PDF."},
	dmarcd.AlertsGrouped:      {"Several alerts", "Alerts of one kind that were sent together."},
	dmarcd.AlertTest:          {"Test", "A test of all channels."},
	dmarcd.WebhookTest:        {"Test", "A test of this channel."},
}

// Kind returns the name of a kind of events.
func Kind(kind dmarcd.EventKind) string {
	if text, ok := kindTexts[kind]; ok {
		return text[0]
	}
	return string(kind)
}

// KindHelp explains a kind of events in one line, "" for an unknown one.
func KindHelp(kind dmarcd.EventKind) string { return kindTexts[kind][1] }

// State returns the word for the state of an alert or a delivery: not sent for not_sent.
func State[S ~string](state S) string { return strings.ReplaceAll(string(state), "_", " ") }
