package mail

import (
	"context"
	"fmt"

	"github.com/dmarcd/dmarcd"
)

// SendInvitation sends the link of an invitation. team is "" for one into none.
func (r *Relay) SendInvitation(ctx context.Context, to, team, link string) error {
	content := Content{
		Subject: "You were invited to dmarcd", Title: "You were invited to dmarcd",
		Paragraphs: []string{"dmarcd monitors the DMARC, SPF and DKIM of your domains.", "The link works once, for 7 days."},
		Action:     Link{Text: "Accept the invitation", URL: link},
		Footer:     "You get this message because someone entered your address. If you do not expect it, ignore it.",
	}
	if team != "" {
		content.Subject = fmt.Sprintf("You were invited to the team %s", team)
		content.Title = content.Subject
	}
	return r.sendOnce(ctx, to, "invitation", content)
}

// SendConfirmation asks the owner of an address whether to send events of a team to it.
func (r *Relay) SendConfirmation(ctx context.Context, to, team, link string) error {
	return r.sendOnce(ctx, to, "confirmation", Content{
		Subject: fmt.Sprintf("Confirm email from the team %s", team), Title: fmt.Sprintf("Receive email from the team %s?", team),
		Paragraphs: []string{"The team wants to send events of its domains, such as DNS changes and problems with DMARC, to this address. You can unsubscribe at any time."},
		Action:     Link{Text: "Confirm", URL: link},
		Footer:     "You get this message because a member of the team entered your address. If you do not want to receive email, ignore it.",
	})
}

// SendDisabled tells an owner of a team that a webhook was disabled. link leads to the page.
func (r *Relay) SendDisabled(ctx context.Context, to, team string, w dmarcd.Webhook, link string) error {
	return r.sendOnce(ctx, to, "disabled."+w.ID.String(), Content{
		Subject: fmt.Sprintf("A webhook of the team %s was disabled", team), Title: fmt.Sprintf("A webhook of the team %s was disabled", team),
		Paragraphs: []string{"Events are no longer delivered to it. Fix the endpoint, then enable the webhook.", w.DisabledReason},
		Details:    []dmarcd.EventDetail{{Name: "Webhook", Value: w.ID.String() + " (" + string(w.Format) + ")"}, {Name: "URL", Value: w.Masked().URL}},
		Action:     Link{Text: "Open webhooks", URL: link},
		Footer:     "You get this message because you are an owner of the team.",
	})
}

// sendOnce sends a message that is not retried.
func (r *Relay) sendOnce(ctx context.Context, to, about string, content Content) error {
	_, err := r.Send(ctx, Message{To: to, ID: fmt.Sprintf("%s.%d", about, r.now().UnixNano()), Content: content})
	return err
}
