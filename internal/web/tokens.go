package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

func tokenForm() ui.Form {
	return ui.Form{Path: Prefix + "/settings/tokens", Method: "post", Submit: "Create token", Fields: []ui.Field{
		{Name: "name", Label: "Name", Type: "text", Required: true, Autocomplete: "off", Hint: "What uses it, such as the name of a script."},
		{Name: "scope", Label: "Scope", Type: "select", Value: string(dmarcd.ScopeRead), Choices: []ui.Choice{
			{Value: string(dmarcd.ScopeRead), Label: "read"},
			{Value: string(dmarcd.ScopeWrite), Label: "read and write"},
			{Value: string(dmarcd.ScopeAdmin), Label: "admin: also tokens, members, mailboxes, retention and audit log"},
			{Value: string(dmarcd.ScopePublish), Label: "publish: read, and publish managed records"},
		}},
		{Name: "days", Label: "Expires after", Type: "select", Value: "90", Choices: []ui.Choice{
			{Value: "30", Label: "30 days"}, {Value: "90", Label: "90 days"}, {Value: "365", Label: "a year"}, {Value: "0", Label: "never"},
		}},
		{Name: "networks", Label: "Networks", Type: "text", Autocomplete: "off", Hint: "Addresses and networks that may use it, such as 192.0.2.0/24, separated by spaces. Leave empty to allow all."},
	}}
}

func (s *Web) tokens(c *site.Call) error { return s.showTokens(c, http.StatusOK, tokenForm(), "") }

func (s *Web) showTokens(c *site.Call, status int, form ui.Form, secret string) error {
	tokens, err := c.Team.Tokens(c.R.Context())
	if err != nil {
		return err
	}
	table := tokenTable(tokens, s.options.Now(), c.Viewer.MayOwn())
	return c.Render(status, settingsFrame(table.ID, "Tokens"), listView{Tabs: settingsTabs(c.Viewer, "Tokens"), Table: table, Form: form, Secret: secret}, table)
}

func tokenTable(tokens []dmarcd.Token, now time.Time, mayRevoke bool) ui.Table {
	t := ui.Table{
		ID: "tokens", Caption: "Tokens", CSV: Prefix + "/settings/tokens?csv=tokens",
		Columns: []ui.Column{
			{Title: "Name", Wide: true, Note: "Id"},
			{Title: "Scope", Note: "Networks"},
			{Title: "State"},
			{Title: "Created", Note: "Created by"},
			{Title: "Last used", Note: "Used from"},
			{Title: "Expires"},
			{Title: "Actions"},
		},
		Empty: ui.Empty{Title: "No tokens", Advice: "A token lets a program use the API for the team.", Action: ui.Link{}},
	}
	for _, token := range tokens {
		state, last := "active", ui.Actions()
		switch {
		case !token.RevokedAt.IsZero():
			state = "revoked"
		case !token.Valid(now):
			state = "expired"
		case mayRevoke:
			last = ui.Actions(ui.Action{
				Label: "Revoke", Path: Prefix + "/settings/tokens/" + token.ID.String() + "/revoke", Danger: true,
				Question: "Revoke the token, and the tokens that it created? Programs that use them stop working at once.",
			})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(token.Name).Noted(token.ID.String()), ui.Text(string(token.Scope)).Noted(strings.Join(dmarcd.NetworkTexts(token.Networks), ", ")), tokenState(state),
			ui.At(token.CreatedAt).Noted(creator(token)), ui.At(token.UsedAt).Noted(token.UsedFrom), ui.At(token.ExpiresAt), last,
		})
	}
	return t
}

// tokenState is red for an expired token alone: a revoked one is as its owner wants it.
func tokenState(state string) ui.Cell {
	if state == "revoked" {
		return ui.Cell{Kind: ui.CellBadge, Text: state}
	}
	return ui.Badge(state)
}

// creator returns who created a token.
func creator(token dmarcd.Token) string {
	if token.Ownerless {
		return cmp.Or(token.CreatedBy, "someone") + ", no longer a member"
	}
	return token.CreatedBy
}

// leftover reports whether a valid token was created by a former member.
func leftover(tokens []dmarcd.Token, now time.Time) bool {
	return slices.ContainsFunc(tokens, func(t dmarcd.Token) bool { return t.Ownerless && t.Valid(now) })
}

// createToken shows the secret in its response, because it is not stored.
func (s *Web) createToken(c *site.Call, written url.Values) error {
	scope, err := dmarcd.ParseScope(written.Get("scope"))
	networks, errNetworks := dmarcd.ParseTokenNetworks(strings.Fields(written.Get("networks")))
	wanted := service.NewToken{Name: strings.TrimSpace(written.Get("name")), Scope: scope, Networks: networks}
	days, errDays := strconv.ParseUint(cmp.Or(written.Get("days"), "0"), 10, 16)
	switch {
	case err != nil:
	case wanted.Name == "":
		err = &dmarcd.InvalidError{Field: "name", Message: "Enter a name, such as that of the program that uses the token."}
	case errDays != nil:
		err = &dmarcd.InvalidError{Field: "days", Message: "Choose when the token expires."}
	case errNetworks != nil:
		err = errNetworks
	case days > 0:
		wanted.ExpiresAt = s.options.Now().AddDate(0, 0, int(days))
	}
	var secret string
	if err == nil {
		_, secret, err = c.Team.CreateToken(c.R.Context(), wanted)
	}
	if err != nil {
		return site.Again(tokenForm(), written, err, func(form ui.Form) error { return s.showTokens(c, http.StatusUnprocessableEntity, form, "") })
	}
	return s.showTokens(c, http.StatusOK, tokenForm(), secret)
}
