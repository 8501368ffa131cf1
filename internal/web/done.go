package web

import "github.com/dmarcd/dmarcd/internal/web/site"

// doneMessages are the messages after a form, by a word in the URL of the next page. They
// are fixed texts, so that a URL cannot inject others.
var doneMessages = map[string]string{
	"domains-added":        "The domains were added. Open one to see what to publish.",
	"domain-added":         "The domain was added. Follow the guide below to have its reports sent here.",
	"domain-deleted":       "The domain and its data were deleted.",
	"domains-tagged":       "The tags were changed.",
	"domains-checked":      "The DNS of these domains is checked within minutes.",
	"domains-deleted":      "The domains and their data were deleted.",
	"domain-checked":       "The DNS was checked just now.",
	"domain-unanswered":    "The DNS did not answer, so nothing was changed. The check is repeated automatically.",
	"answered-yours":       "Saved: the sender is yours. Its mail counts as legitimate, so it has to pass before the policy gets stricter.",
	"answered-not_yours":   "Saved: the sender is not yours. Its mail counts as spoofing, and a stricter policy blocks it.",
	"forwarding-accepted":  "Saved. This forwarded mail no longer holds back a stricter policy, until a quarter more of it is affected.",
	"parked":               "Saved: the domain is not used for mail. Publish p=reject now; there is no need to wait for reports.",
	"not-parked":           "Saved: the domain is used for mail.",
	"class-set":            "Saved. The mail below is counted under the new class, here, in all figures and in the advice.",
	"sender-set":           "The sender was saved. Past mail is reassigned within a few minutes.",
	"sender-removed":       "The sender was removed. Its mail is shown under the previous sender.",
	"purpose-set":          "The purpose was saved.",
	"record-published":     "The record was published.",
	"record-proposed":      "The change was proposed. Another user has to approve it.",
	"proposal-withdrawn":   "The proposal was withdrawn.",
	"record-stopped":       "The record is no longer managed. Its name answers for 90 more days: replace the CNAME record until then.",
	"target-set":           "The server and its key work, and were saved. Records that you manage from now on are published there.",
	"target-removed":       "The server and its key were removed. What is published there stays.",
	"tags-set":             "The tags were saved.",
	"sample-added":         "Sample data was added. Explore it, and remove it when you are done.",
	"sample-deleted":       "The sample data was removed.",
	"token-revoked":        "The token was revoked. It no longer works.",
	"address-asked":        "A message with a link is on its way to the address. Open the link within 30 minutes, in this browser.",
	"address-set":          "Your address was confirmed.",
	"name-set":             "Your name was saved.",
	"password-set":         "Your password was changed, and all your other sessions were ended.",
	"app-removed":          "The authenticator app was removed. Your other sessions were ended.",
	"passkey-added":        "The passkey was added. Your other sessions were ended.",
	"passkey-removed":      "The passkey was removed. Your other sessions were ended.",
	"factor-required":      "Saved. It applies from now on.",
	"approval-saved":       "Saved. It applies to the next record that is published.",
	"session-ended":        "The session was ended. That browser has to sign in again.",
	"sessions-ended":       "All your other sessions were ended.",
	"invitation-withdrawn": "The invitation was withdrawn. Its link no longer works.",
	"member-removed":       "The member was removed from the team.",
	"member-tokens":        "The member was removed from the team. Tokens that former members created still work: revoke those that are no longer needed.",
	"role-set":             "The role was changed.",
	"mailbox-added":        "The mailbox was added: the sign-in works, and the folder can be opened. It is read within a minute.",
	"mailbox-resumed":      "The mailbox will be read again within a minute.",
	"mailbox-removed":      "The mailbox was removed. The mail in it was not changed.",
	"channel-added":        "The channel was added.",
	"channel-on":           "The channel is on. Notifications are sent from now on.",
	"channel-off":          "The channel is off. Nothing is sent to it.",
	"channel-removed":      "The channel was removed.",
	"channel-saved":        "Saved. It applies from now on.",
	"channel-asked":        "A message with a link was sent to the address. Notifications are sent once the recipient confirms it.",
	"delivery-retried":     "The delivery is retried within seconds.",
	"alert-acknowledged":   "The alert was acknowledged.",
	"alerts-acknowledged":  "The alerts were acknowledged.",
	"alert-tested":         "A test is on its way to all channels. Reload in a few seconds to see the result.",
	"alert-not-sent":       "The test was not sent: no channel is on.",
	"digest-set":           "Your digest was saved.",
	"alert-rules-set":      "The rules were saved. They apply to events from now on.",
	"retention-set":        "The retention was saved. Older data is deleted in the background.",
	"team-deleted":         "The team was deleted. Its data is removed within minutes.",
	"team-created":         "The team was created.",
	"whitelist-changed":    "API access was changed.",
	"user-removed":         "The user was removed and signed out everywhere.",
	"report-excluded":      "The report is excluded. Its messages are no longer counted.",
	"report-included":      "The report is counted.",
	"report-deleted":       "The report was deleted.",
	"rejected-deleted":     "The rejected item was deleted.",
}

// doneMessage returns the message for a word, "" if it is unknown.
func doneMessage(word string, viewer site.Viewer) string {
	if word == teamSwitched && viewer.Team.Name != "" {
		return "Switched to " + viewer.Team.Name + "."
	}
	return doneMessages[word]
}

// teamSwitched is the word after a switch to another team.
const teamSwitched = "team-switched"
