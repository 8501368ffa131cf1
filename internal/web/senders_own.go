package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const ownSendersPath = Prefix + "/senders/own"

// senderForm edits a sender of the team. If the team has no sender with the key, the form renames
// a known one; without a key, it adds a sender whose key is made of the name.
func senderForm(s dmarcd.TeamSender) ui.Form {
	return ui.Form{Path: ownSendersPath, Method: "post", Submit: "Save sender", Fields: []ui.Field{
		{Name: "key", Type: "hidden", Value: s.Key},
		{Name: "name", Label: "Name", Type: "text", Value: s.Name, Required: true, Autocomplete: "off", Placeholder: "Our CRM"},
		{Name: "class", Label: "Class for all domains", Type: "select", Value: string(s.Class), Choices: []ui.Choice{
			{Value: "", Label: "decide automatically"},
			{Value: string(dmarcd.ClassYours), Label: "yours"},
			{Value: string(dmarcd.ClassService), Label: "service"},
			{Value: string(dmarcd.ClassForwarder), Label: "forwarder"},
			{Value: string(dmarcd.ClassUnknown), Label: "unknown"},
			{Value: string(dmarcd.ClassSpoofing), Label: "spoofing"},
		}},
		{Name: "networks", Label: "Networks", Type: "text", Value: networkList(s), Autocomplete: "off", Placeholder: "192.0.2.0/24, 2001:db8::1", Hint: "Addresses that only this sender uses. Separate with commas."},
		{Name: "hosts", Label: "Hosts", Type: "text", Value: strings.Join(s.Hosts, ", "), Autocomplete: "off", Placeholder: "out.crm.example", Hint: "Host names of its servers, including subdomains."},
		{Name: "domains", Label: "Domains", Type: "text", Value: strings.Join(s.Domains, ", "), Autocomplete: "off", Placeholder: "bounce.crm.example", Hint: "Its own domains that pass DKIM or SPF, including subdomains."},
	}}
}

func networkList(s dmarcd.TeamSender) string {
	texts := make([]string, len(s.Networks))
	for i, network := range s.Networks {
		texts[i] = network.String()
	}
	return strings.Join(texts, ", ")
}

// namingForm is the form that names the sender of a page, and its title.
func namingForm(c *site.Call, asked mailQuery, found insight.Breakdown) (ui.Form, string, error) {
	if !c.Viewer.MayEdit() || asked.Group != insight.GroupSender && asked.Group != insight.GroupAddress || dmarcd.SenderBase(asked.Key) == "-" {
		return ui.Form{}, "", nil
	}
	own, err := c.Team.TeamSenders(c.R.Context())
	if err != nil {
		return ui.Form{}, "", err
	}
	base := dmarcd.SenderBase(asked.Key) // a part is named together with the rest of its sender
	if at := slices.IndexFunc(own, func(s dmarcd.TeamSender) bool { return s.Key == base }); at >= 0 {
		return senderForm(own[at]), "Edit this sender", nil
	}
	form := senderForm(dmarcd.TeamSender{Key: base})
	switch base {
	case "": // an address or a network
		form.Fields[3].Value = asked.Key
	case asked.Key:
		form.Fields[1].Value = found.Name
		fallthrough
	default:
		form.Fields[3].Hint = fmt.Sprintf("Leave networks, hosts and domains empty to name all of %s.", cmp.Or(form.Fields[1].Value, base))
	}
	return form, "Name this sender", nil
}

// ownSenders lists the senders that the team added or corrected.
func (s *Web) ownSenders(c *site.Call) error {
	form := senderForm(dmarcd.TeamSender{})
	own, err := c.Team.TeamSenders(c.R.Context())
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(own, func(s dmarcd.TeamSender) bool { return s.Key == c.R.URL.Query().Get("key") }); at >= 0 {
		form = senderForm(own[at])
	}
	return s.showOwnSenders(c, http.StatusOK, own, form)
}

func (s *Web) showOwnSenders(c *site.Call, status int, own []dmarcd.TeamSender, form ui.Form) error {
	table := ownSenderTable(c, own)
	return c.Render(status, site.Page{
		Template: "senders_own", Title: "Your senders", Section: "Senders",
		Trail: []ui.Link{{Text: "Senders", Href: c.Link(Prefix + "/senders")}},
	}, listView{Table: table, Form: form}, table)
}

func ownSenderTable(c *site.Call, own []dmarcd.TeamSender) ui.Table {
	t := ui.Table{
		ID: "senders", Caption: "Your senders", CSV: ownSendersPath + "?csv=senders",
		Columns: []ui.Column{{Title: "Sender", Wide: true, Note: "Key"}, {Title: "Class"}, {Title: "Networks", Wide: true}, {Title: "Hosts", Wide: true}, {Title: "Domains", Wide: true}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No senders yet", Advice: "Add a sender that is not recognized, or open one under Senders to rename it."},
	}
	for _, sender := range own {
		class := ui.Text("automatic")
		if sender.Class != "" {
			class = classBadge(sender.Class)
		}
		buttons := ui.Actions()
		if c.Viewer.MayEdit() {
			buttons.Actions = []ui.Action{{
				Label: "Remove", Path: ownSendersPath + "/" + url.PathEscape(sender.Key) + "/remove", Danger: true,
				Question: "Remove " + sender.Name + "? Its mail will be shown under the previous sender.",
			}}
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(sender.Name, c.Link(Prefix+"/senders/"+string(insight.GroupSender)+"/"+url.PathEscape(sender.Key))).Noted(sender.Key), class,
			ui.Text(networkList(sender)), ui.Text(strings.Join(sender.Hosts, ", ")), ui.Text(strings.Join(sender.Domains, ", ")), buttons,
		})
	}
	return t
}

func (s *Web) setOwnSender(c *site.Call, written url.Values) error {
	own, err := c.Team.TeamSenders(c.R.Context())
	if err != nil {
		return err
	}
	sender := dmarcd.TeamSender{
		Key: written.Get("key"), Name: written.Get("name"), Class: dmarcd.Class(written.Get("class")),
		Hosts: splitList[string](written.Get("hosts")), Domains: splitList[string](written.Get("domains")),
	}
	networks := splitList[string](written.Get("networks"))
	// A part of an autonomous system becomes a separate sender.
	_, isSystem := dmarcd.SystemNumber(sender.Key)
	if isSystem && len(networks)+len(sender.Hosts)+len(sender.Domains) > 0 {
		sender.Key = ""
	}
	if _, err := c.Team.SetTeamSender(c.R.Context(), sender, networks); err != nil {
		return site.Again(senderForm(sender), written, err, func(form ui.Form) error {
			return s.showOwnSenders(c, http.StatusUnprocessableEntity, own, form)
		})
	}
	return c.Done(ownSendersPath, "sender-set")
}

func (s *Web) removeOwnSender(c *site.Call) error {
	return c.Finish(c.Team.RemoveTeamSender(c.R.Context(), c.Params.Get("sender")), ownSendersPath, "sender-removed")
}
