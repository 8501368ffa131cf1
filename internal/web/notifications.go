package web

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const notificationsPath = Prefix + "/settings/notifications"

// channelKind is a kind of channel, with a form of its own. A channel is a dmarcd.Webhook.
type channelKind struct {
	// Slug is the kind in the path of its form.
	Slug, Name string
	// About says in one line what the reader gets.
	About string
	// Formats are the formats of its channels; several are a choice.
	Formats []dmarcd.WebhookFormat
	// Target is the field for the address of the channel.
	Target ui.Field
}

// Path is the path of the form.
func (k channelKind) Path() string { return notificationsPath + "/new/" + k.Slug }

// managersSlug is the kind of channel that gets the report for managers and nothing else.
const managersSlug = "managers"

// channelKinds are the kinds of channels in the order of the page.
func channelKinds() []channelKind {
	target := func(name, label, placeholder, hint string) ui.Field {
		return ui.Field{Name: name, Label: label, Type: "text", Required: true, Autocomplete: "off", Placeholder: placeholder, Hint: hint}
	}
	address := target("address", "Email address", "name@example.com", "Unless it is your own, its owner first gets a message with a link. Nothing else is sent until they confirm.")
	const secret = " It is stored encrypted, and never shown again."
	return []channelKind{
		{
			"email", "Email", "Messages to an address of your choice.",
			[]dmarcd.WebhookFormat{dmarcd.FormatEmail},
			address,
		},
		{
			"slack", "Slack", "Messages in a Slack channel.",
			[]dmarcd.WebhookFormat{dmarcd.FormatSlack},
			target("url", "Webhook URL", "https://hooks.slack.com/services/…", "In Slack, add the app Incoming Webhooks to the channel, and copy its URL."+secret),
		},
		{
			"teams", "Microsoft Teams", "Cards in a Teams channel.",
			[]dmarcd.WebhookFormat{dmarcd.FormatTeams},
			target("url", "Workflow URL", "https://…", "In Teams, add the workflow “When a Teams webhook request is received” to the channel, and copy its URL."+secret),
		},
		{
			"discord", "Discord", "Messages in a Discord channel.",
			[]dmarcd.WebhookFormat{dmarcd.FormatDiscord},
			target("url", "Webhook URL", "https://discord.com/api/webhooks/…", "In Discord, open the settings of the channel, Integrations, Webhooks, and copy the URL."+secret),
		},
		{
			"pagerduty", "PagerDuty", "Incidents that page the person on call.",
			[]dmarcd.WebhookFormat{dmarcd.FormatPagerDuty},
			target("key", "Integration key", "", "In PagerDuty, open the service, Integrations, add Events API v2, and copy the key. For the EU region, enter https://events.eu.pagerduty.com/v2/enqueue?routing_key=KEY."+secret),
		},
		{
			"webhook", "Webhook", "Signed JSON to a program of yours.",
			[]dmarcd.WebhookFormat{dmarcd.FormatStandard, dmarcd.FormatJSON},
			target("url", "URL", "https://example.com/hooks/dmarc", "It must answer with a status 2xx within 15 seconds. The secret to verify signatures is shown once, after this form."),
		},
		{
			managersSlug, "Report for managers", "A PDF by email, on the first day of each month.",
			[]dmarcd.WebhookFormat{dmarcd.FormatEmail},
			address,
		},
	}
}

// kindOfChannel returns the kind of channels that have a format.
func kindOfChannel(format dmarcd.WebhookFormat) channelKind {
	kinds := channelKinds()
	at := slices.IndexFunc(kinds, func(k channelKind) bool { return slices.Contains(k.Formats, format) })
	return kinds[max(at, 0)]
}

// form returns the form for a new channel. Channels that page a person begin with errors alone.
func (k channelKind) form() ui.Form {
	form := ui.Form{Path: k.Path(), Method: "post", Submit: "Add and test", Fields: []ui.Field{k.Target}}
	switch k.Slug {
	case "email":
		form.Submit = "Add email channel"
	case managersSlug:
		form.Submit = "Send each month"
		return form
	}
	if len(k.Formats) > 1 {
		form.Fields = append(form.Fields, ui.Field{Name: "format", Label: "Format", Type: "select", Value: string(k.Formats[0]), Choices: []ui.Choice{
			{Value: string(dmarcd.FormatStandard), Label: "Standard Webhooks"}, {Value: string(dmarcd.FormatJSON), Label: "the event alone, as JSON"},
		}})
	}
	form.Fields = append(form.Fields, kindFields(k.Formats[0], func(kind dmarcd.EventKind) bool {
		return !kind.IsDigest() && (k.Slug != "pagerduty" || kind.Level() == dmarcd.LevelError)
	})...)
	form.Fields = append(form.Fields, domainsField(nil))
	return form
}

// kindFields are the boxes for kinds of events, in groups. The report for managers is a PDF, which only
// an email can contain.
func kindFields(format dmarcd.WebhookFormat, chosen func(dmarcd.EventKind) bool) []ui.Field {
	var fields []ui.Field
	for _, group := range phrase.KindGroups() {
		field := ui.Field{Name: "kinds", Label: group.Title, Type: "checks"}
		for _, kind := range group.Kinds {
			if kind == dmarcd.DigestManagers && format != dmarcd.FormatEmail && !chosen(kind) {
				continue
			}
			field.Choices = append(field.Choices, ui.Choice{Value: string(kind), Label: phrase.Kind(kind), Hint: phrase.KindHelp(kind), Checked: chosen(kind)})
		}
		fields = append(fields, field)
	}
	return fields
}

func domainsField(domains []string) ui.Field {
	return ui.Field{
		Name: "domains", Label: "Only these domains", Type: "text", Autocomplete: "off", Value: strings.Join(domains, ", "), Placeholder: "example.com",
		Hint: "Separate with commas. Leave empty for all domains; digests are always about all.",
	}
}

// readKinds returns the kinds whose boxes are ticked: nil if these are all except digests, so that
// kinds of later versions are included.
func readKinds(written url.Values) ([]dmarcd.EventKind, error) {
	var kinds []dmarcd.EventKind
	every := true
	for _, group := range phrase.KindGroups() {
		for _, kind := range group.Kinds {
			ticked := slices.Contains(written["kinds"], string(kind))
			if ticked {
				kinds = append(kinds, kind)
			}
			every = every && ticked == !kind.IsDigest()
		}
	}
	for _, text := range written["kinds"] {
		if !slices.Contains(kinds, dmarcd.EventKind(text)) {
			return nil, &dmarcd.InvalidError{Field: "kinds", Message: "There is no such kind of event. Tick the boxes of this page."}
		}
	}
	switch {
	case len(kinds) == 0:
		return nil, &dmarcd.InvalidError{Field: "kinds", Message: "Tick at least one box in this or another group, or nothing would be sent."}
	case every:
		return nil, nil
	}
	return kinds, nil
}

// pagerDutyKey is the form of an integration key.
var pagerDutyKey = regexp.MustCompile(`^[0-9A-Za-z]{32}$`)

// read returns the channel in a form.
func (k channelKind) read(written url.Values) (dmarcd.Webhook, error) {
	target := strings.TrimSpace(written.Get(k.Target.Name))
	w := dmarcd.Webhook{URL: target, Format: k.Formats[0], Domains: splitList[string](written.Get("domains"))}
	switch {
	case w.Format == dmarcd.FormatEmail:
		address, err := dmarcd.ParseEmail(target)
		if err != nil {
			return w, renamedField(err, map[string]string{"email": "address"})
		}
		w.URL = "mailto:" + address
	case k.Slug == "pagerduty" && pagerDutyKey.MatchString(target):
		w.URL = "https://events.pagerduty.com/v2/enqueue?routing_key=" + target
	case k.Slug == "pagerduty" && !strings.HasPrefix(target, "http"):
		return w, &dmarcd.InvalidError{Field: "key", Message: "An integration key has 32 letters and digits. Copy it from the integration in PagerDuty."}
	case len(k.Formats) > 1:
		w.Format = dmarcd.WebhookFormat(written.Get("format"))
	}
	if k.Slug == managersSlug {
		w.Kinds = []dmarcd.EventKind{dmarcd.DigestManagers}
		return w, nil
	}
	var err error
	w.Kinds, err = readKinds(written)
	return w, err
}

// atFormField moves an error about a channel to the field of its form.
func (k channelKind) atFormField(err error) error {
	return renamedField(err, map[string]string{"url": k.Target.Name, "domain": "domains"})
}

type notificationsView struct {
	Tabs []ui.Tab
	// Conclusion says in one line whether notifications arrive; Tone is its color.
	Conclusion, Tone string
	Table            ui.Table
	Kinds            []channelKind
	// Digest is the form for the user's digest; it has no fields if the installation sends no
	// mail. Address is the recipient.
	Digest  ui.Form
	Address string
	// Rules is the form for the rules of the team. Mutes is the number of mutes, which only the API
	// changes.
	Rules ui.Form
	Mutes int
}

// notifications shows the channels, the user's digest and the rules.
func (s *Web) notifications(c *site.Call) error {
	rules, err := c.Team.AlertRules(c.R.Context())
	if err != nil {
		return err
	}
	return s.showNotifications(c, http.StatusOK, rulesForm(rules), len(rules.Mutes))
}

func (s *Web) showNotifications(c *site.Call, status int, rules ui.Form, mutes int) error {
	channels, err := c.Team.Webhooks(c.R.Context())
	if err != nil {
		return err
	}
	latest, err := c.Team.LatestDeliveries(c.R.Context())
	if err != nil {
		return err
	}
	own, err := c.Team.OwnDigest(c.R.Context())
	if err != nil {
		return err
	}
	view := notificationsView{
		Tabs: settingsTabs(c.Viewer, "Notifications"), Table: channelTable(channels, latest, c.Viewer.MayOwn()), Kinds: channelKinds(),
		Digest: digestForm(own.Kind), Address: own.Address, Rules: rules, Mutes: mutes,
	}
	view.Conclusion, view.Tone = concludeChannels(channels, latest)
	return c.Render(status, settingsFrame("notifications", "Notifications"), view, view.Table)
}

// concludeChannels says whether notifications arrive.
func concludeChannels(channels []dmarcd.Webhook, latest map[dmarcd.WebhookID]dmarcd.WebhookDelivery) (conclusion, tone string) {
	on, failing := 0, 0
	for _, w := range channels {
		if !w.Enabled() || w.IsDigest() {
			continue
		}
		on++
		if d := latest[w.ID]; d.State == dmarcd.DeliveryRetrying || d.State == dmarcd.DeliveryNotSent {
			failing++
		}
	}
	switch {
	case on == 0:
		return "Alerts are not sent to anyone: no channel is on. They are only listed under Activity.", "warning"
	case failing == 0:
		return fmt.Sprintf("Notifications are sent to %s. No delivery fails.", phrase.Count(int64(on), "channel")), ""
	}
	return fmt.Sprintf("The last delivery failed in %d of %s. Fix what the list says.", failing, phrase.Count(int64(on), "channel")), "bad"
}

// channelName is the display name of a channel.
func channelName(w dmarcd.Webhook) string {
	name := kindOfChannel(w.Format).Name
	if w.Format == dmarcd.FormatJSON {
		name += " (JSON)"
	}
	return name
}

// channelTarget is the address of a channel.
func channelTarget(w dmarcd.Webhook) string {
	if w.Format == dmarcd.FormatEmail {
		return w.Address()
	}
	return w.URL
}

func channelTable(channels []dmarcd.Webhook, latest map[dmarcd.WebhookID]dmarcd.WebhookDelivery, mayChange bool) ui.Table {
	t := ui.Table{
		ID: "channels", Caption: "Channels", CSV: notificationsPath + "?csv=channels",
		Columns: []ui.Column{{Title: "Channel", Note: "Address"}, {Title: "What is sent", Wide: true, Note: "Domains"}, {Title: "Last delivery", Wide: true, Note: "Reason"}, {Title: "Actions"}},
		Empty:   ui.Empty{Title: "No channels yet", Advice: "Choose below where notifications go.", Action: ui.Link{}},
	}
	for _, w := range channels {
		path := notificationsPath + "/" + w.ID.String()
		buttons := ui.Actions()
		if mayChange && w.Enabled() {
			buttons = ui.Actions(ui.Action{Label: "Send test", Path: path + "/test"})
		}
		domains := ""
		if w.Domains != nil {
			domains = "only " + strings.Join(w.Domains, ", ")
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.LinkTo(channelName(w), path).Noted(channelTarget(w)), ui.Text(kindsText(w.Kinds)).Noted(domains), channelState(w, latest[w.ID]), buttons,
		})
	}
	return t
}

// channelState is whether the channel is on and, if so, what became of its last delivery.
func channelState(w dmarcd.Webhook, last dmarcd.WebhookDelivery) ui.Cell {
	switch {
	case service.AwaitsConfirmation(w):
		return ui.Cell{Kind: ui.CellBadge, Text: "not confirmed", Tone: ui.Tone("warning")}.Noted(w.DisabledReason)
	case !w.Enabled():
		return ui.Cell{Kind: ui.CellBadge, Text: "off"}.Noted(w.DisabledReason)
	case last.ID == 0:
		return ui.Cell{Kind: ui.CellBadge, Text: "nothing sent yet"}
	}
	return deliveryState(last)
}

// kindsText sums up which kinds a channel selects.
func kindsText(kinds []dmarcd.EventKind) string {
	if kinds == nil {
		return "everything except digests"
	}
	const fewKinds = 3
	var parts []string
	for _, group := range phrase.KindGroups() {
		of := slices.DeleteFunc(slices.Clone(group.Kinds), func(k dmarcd.EventKind) bool { return !slices.Contains(kinds, k) })
		switch {
		case len(of) == 0:
		case len(of) == len(group.Kinds):
			parts = append(parts, "all "+strings.TrimPrefix(group.Title, "all "))
		case len(kinds) <= fewKinds:
			for _, kind := range of {
				parts = append(parts, phrase.Kind(kind))
			}
		default:
			parts = append(parts, fmt.Sprintf("%d of %d %s", len(of), len(group.Kinds), group.Title))
		}
	}
	return strings.Join(parts, ", ")
}

type newChannelView struct {
	Tabs []ui.Tab
	Kind channelKind
	Form ui.Form
	// NoRelay means that the installation cannot send email.
	NoRelay bool
}

func (s *Web) newChannel(c *site.Call) error {
	kind, err := requestedKind(c)
	if err != nil {
		return err
	}
	return s.showNewChannel(c, http.StatusOK, kind, kind.form())
}

// requestedKind returns the kind of channel in the path.
func requestedKind(c *site.Call) (channelKind, error) {
	kinds := channelKinds()
	at := slices.IndexFunc(kinds, func(k channelKind) bool { return k.Slug == c.Params.Get("kind") })
	if at < 0 {
		return channelKind{}, dmarcd.ErrNotFound
	}
	return kinds[at], nil
}

func (s *Web) showNewChannel(c *site.Call, status int, kind channelKind, form ui.Form) error {
	frame := settingsFrame("notifications_new", "Add "+kind.Name)
	frame.Trail = []ui.Link{{Text: "Notifications", Href: notificationsPath}}
	return c.Render(status, frame, newChannelView{
		Tabs: settingsTabs(c.Viewer, "Notifications"), Kind: kind, Form: form, NoRelay: kind.Formats[0] == dmarcd.FormatEmail && !s.options.Service.SendsMail(),
	})
}

// addChannel adds a channel, and tests it unless its address has to be confirmed first. It shows the
// secret in its response, because it is stored encrypted.
func (s *Web) addChannel(c *site.Call, written url.Values) error {
	kind, err := requestedKind(c)
	if err != nil {
		return err
	}
	wanted, err := kind.read(written)
	var added dmarcd.Webhook
	var secret string
	if err == nil {
		added, secret, err = c.Team.AddWebhook(c.R.Context(), wanted)
	}
	if err != nil {
		return site.Again(kind.form(), written, kind.atFormField(err), func(form ui.Form) error {
			return s.showNewChannel(c, http.StatusUnprocessableEntity, kind, form)
		})
	}
	path := notificationsPath + "/" + added.ID.String()
	if !added.Enabled() {
		return c.Done(path, "channel-asked")
	}
	if _, err := c.Team.TestWebhook(c.R.Context(), added.ID); err != nil && !throttled(err) {
		return err
	}
	if secret == "" {
		return c.Done(path, "channel-added")
	}
	return s.showChannel(c, http.StatusOK, added.ID, secret, nil)
}
