package web

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

// classSet is the word after the class of a sender was changed.
const classSet = "class-set"

// classChoices are the classes that a user can set.
var classChoices = []ui.Choice{
	{Value: string(dmarcd.ClassYours), Label: "Yours"},
	{Value: string(dmarcd.ClassForwarder), Label: "Forwarder or list"},
	{Value: string(dmarcd.ClassUnknown), Label: "Unknown"},
	{Value: string(dmarcd.ClassSpoofing), Label: "Spoofing"},
	{Value: "", Label: "Automatic"},
}

// addAssessment adds the class of a sender and, for one domain, what overrides it.
func (c *call) addAssessment(view *sourceView, mail *insight.Mail) error {
	asked := view.Query
	if asked.Group == insight.GroupNetwork {
		list, err := mail.Sources(c.r.Context(), insight.Query{Group: asked.Group, Key: asked.Key, Limit: 1, Assess: true})
		if err != nil {
			return err
		}
		if len(list.Sources) > 0 {
			view.Assessment = list.Sources[0].Assessment
			view.Class = classBadge(view.Assessment.Class)
		}
	}
	isSender := asked.Group == insight.GroupNetwork || asked.Group == insight.GroupAddress
	if !isSender || asked.Domain == "" || !c.viewer.MayEdit() {
		return nil
	}
	path := domainPath(asked.Domain) + "/senders"
	page := []string{"group", string(asked.Group), "source", asked.Key}
	for _, choice := range classChoices {
		label := "Mark as " + strings.ToLower(choice.Label)
		if choice.Value == "" {
			label = "Reset to automatic"
		}
		view.Classes = append(view.Classes, ui.Action{
			Label: label, Path: c.link(path+"/"+url.PathEscape(asked.Key), page...), Name: "class", Value: choice.Value,
		})
	}
	view.ClassForm = ui.Form{Path: c.link(path, page...), Method: "post", Submit: "Set class", Fields: []ui.Field{
		{
			Name: "key", Label: "Sender", Type: "text", Value: cmp.Or(dmarcd.SenderBase(asked.Key), asked.Key), Required: true, Autocomplete: "off",
			Hint: "An address, a network such as 192.0.2.0/24, a whole sender such as AS64496, or a part such as AS64496:others.",
		},
		{Name: "class", Label: "Class", Type: "select", Choices: classChoices},
	}}
	return nil
}

// setSenderClass overrides the class of a sender, or removes the override.
func (s *Web) setSenderClass(c *call, domain dmarcd.Domain, form url.Values) error {
	key := cmp.Or(c.params.Get("sender"), form.Get("key"))
	if err := c.team.SetSenderClass(c.r.Context(), domain.Name, key, dmarcd.Class(form.Get("class"))); err != nil {
		return err
	}
	query := c.r.URL.Query()
	return c.redirect(sourcePath(s.sourceQuery(query, domain.Name), cmp.Or(query.Get("source"), key)) + "&done=" + classSet)
}
