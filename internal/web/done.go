package web

// doneMessages say what a form did, by the word in the address of the page
// after it. The words are ours alone: an address cannot make the page say
// anything else.
var doneMessages = map[string]string{
	"domains-added":     "The domains were added. Open one to see what to publish.",
	"domain-added":      "The domain was added. Follow the guide below to have its reports sent here.",
	"domain-deleted":    "The domain and everything known about it was deleted.",
	"domain-checked":    "The DNS was checked just now.",
	"class-set":         "The class of the sender was saved.",
	"purpose-set":       "The purpose was saved.",
	"token-revoked":     "The token was revoked. It no longer works.",
	"name-set":          "Your name was saved.",
	"password-set":      "Your password was changed, and all your other sessions were ended.",
	"session-ended":     "The session was ended. Its browser has to sign in again.",
	"sessions-ended":    "All your other sessions were ended.",
	"invite-withdrawn":  "The invitation was withdrawn. Its link no longer works.",
	"member-removed":    "The member was removed from the team.",
	"role-set":          "The role was changed.",
	"mailbox-added":     "The mailbox was added. It is read within a minute.",
	"mailbox-resumed":   "The mailbox is read again within a minute.",
	"mailbox-removed":   "The mailbox was removed. Mail in it was left alone.",
	"retention-set":     "The retention was saved. What is older is deleted in the background.",
	"team-created":      "The team was created.",
	"whitelist-changed": "The whitelist was changed.",
	"user-removed":      "The user was removed and signed out everywhere.",
	"report-excluded":   "The report is excluded. Its messages are no longer counted.",
	"report-included":   "The report is counted.",
	"report-deleted":    "The report was deleted.",
	"rejected-deleted":  "The rejected item was deleted.",
	"team-switched":     "You switched to another team.",
}
