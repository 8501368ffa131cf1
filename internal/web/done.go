package web

// doneMessages are the messages after a form, by a word in the URL of the next page. They
// are fixed texts, so that a URL cannot inject others.
var doneMessages = map[string]string{
	"domains-added":        "The domains were added. Open one to see what to publish.",
	"domain-added":         "The domain was added. Follow the guide below to have its reports sent here.",
	"domain-deleted":       "The domain and its data were deleted.",
	"domain-checked":       "The DNS was checked just now.",
	"domain-unanswered":    "The DNS did not answer, so nothing was changed. The check is repeated automatically.",
	"answered-yours":       "Saved: the sender is yours. Its mail counts as legitimate, so it has to pass before the policy gets stricter.",
	"answered-not_yours":   "Saved: the sender is not yours. Its mail counts as spoofing, and a stricter policy blocks it.",
	"forwarding-accepted":  "Saved. This forwarded mail no longer holds back a stricter policy, until a quarter more of it is affected.",
	"parked":               "Saved: the domain is not used for mail. It is advised to publish p=reject at once, without waiting for reports.",
	"not-parked":           "Saved: the domain is used for mail.",
	"class-set":            "The class was saved. Figures and advice of the domain use it from now on.",
	"sender-set":           "The sender was saved. Past mail is reassigned within a few minutes.",
	"sender-removed":       "The sender was removed. Its mail is shown under the previous sender.",
	"purpose-set":          "The purpose was saved.",
	"tags-set":             "The tags were saved.",
	"sample-added":         "Sample data was added. Explore it, and remove it when you are done.",
	"sample-deleted":       "The sample data was removed.",
	"token-revoked":        "The token was revoked. It no longer works.",
	"name-set":             "Your name was saved.",
	"password-set":         "Your password was changed, and all your other sessions were ended.",
	"session-ended":        "The session was ended. That browser has to sign in again.",
	"sessions-ended":       "All your other sessions were ended.",
	"invitation-withdrawn": "The invitation was withdrawn. Its link no longer works.",
	"member-removed":       "The member was removed from the team.",
	"role-set":             "The role was changed.",
	"mailbox-added":        "The mailbox was added. It will be read within a minute.",
	"mailbox-resumed":      "The mailbox will be read again within a minute.",
	"mailbox-removed":      "The mailbox was removed. The mail in it was not changed.",
	"webhook-added":        "The webhook was added. Test it to see whether messages arrive.",
	"webhook-enabled":      "The webhook is enabled. Events are delivered from now on.",
	"webhook-disabled":     "The webhook is disabled. Events are no longer delivered.",
	"webhook-removed":      "The webhook was removed.",
	"webhook-tested":       "The test was delivered.",
	"webhook-test-failed":  "The test failed. The first row shows the reason.",
	"webhook-asked":        "Events are delivered once the recipient confirms the address, with a link in an email.",
	"delivery-retried":     "The delivery is retried within seconds.",
	"alert-acknowledged":   "The alert was acknowledged.",
	"alert-tested":         "A test alert was sent to all enabled webhooks.",
	"alert-not-sent":       "The test alert is listed below. It was not sent, because no webhook is enabled.",
	"digest-set":           "Your digest was saved.",
	"alert-rules-set":      "The rules were saved. They apply to events from now on.",
	"retention-set":        "The retention was saved. Older data is deleted in the background.",
	"team-created":         "The team was created.",
	"whitelist-changed":    "The whitelist was changed.",
	"user-removed":         "The user was removed and signed out everywhere.",
	"report-excluded":      "The report is excluded. Its messages are no longer counted.",
	"report-included":      "The report is counted.",
	"report-deleted":       "The report was deleted.",
	"rejected-deleted":     "The rejected item was deleted.",
}

// doneMessage returns the message about the last form, "" if there is none.
func (c *call) doneMessage() string {
	done := c.r.URL.Query().Get("done")
	if done == teamSwitched && c.viewer.Team.Name != "" {
		return "Switched to " + c.viewer.Team.Name + "."
	}
	return doneMessages[done]
}

// teamSwitched is the word after a switch to another team.
const teamSwitched = "team-switched"
