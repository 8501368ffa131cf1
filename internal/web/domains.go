package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/phrase"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
)

const domainsPath = Prefix + "/domains"

// domainsView is a list of domains.
type domainsView struct {
	// Path is the page without a query.
	Path string
	// All is the number of domains of the team or with the tag, Matching of those that match.
	All, Matching int
	Search        string
	Filters       []domainsFilter
	Tag           tagChoice
	// Hidden are parameters that the filter does not change.
	Hidden []ui.Choice
	// Clear is the page without a filter, "" if there is none.
	Clear string
	Table ui.Table
	Pager ui.Pager
	// Bulk has no Path where nothing can be changed.
	Bulk bulkView
}

// domainsFilter is a filter with its values, and how many domains each selects.
type domainsFilter struct {
	Name, Label, Value string
	Choices            []ui.Choice
	Counts             []domainsCount
}

// domainsCount is the number of domains with a value, as a link that selects them.
type domainsCount struct {
	Label   string
	Domains int
	Href    string
	Current bool
}

// bulkView is the form that changes selected domains.
type bulkView struct {
	Path, Tags string
	// Error says why nothing was changed, and Field is the field that it is about.
	Error, Field            string
	Matching                int
	All, MayEdit, MayDelete bool
}

// filterNames are the filters of the list of domains in the query.
var filterNames = []string{"search", "policy", "grade", "stage", "next"}

// domainsFilters are the filters with their values in order. The label of the first is for no filter.
var domainsFilters = []domainsFilter{
	{Name: "policy", Label: "Policy", Choices: []ui.Choice{
		{Label: "any policy"},
		{Value: "missing", Label: "no record"},
		{Value: "none", Label: "none"},
		{Value: "quarantine", Label: "quarantine"},
		{Value: "reject", Label: "reject"},
		{Value: "unknown", Label: "not known yet"},
	}},
	{Name: "grade", Label: "Grade", Choices: []ui.Choice{
		{Label: "any grade"},
		{Value: "A+", Label: "A+"},
		{Value: "A", Label: "A"},
		{Value: "B", Label: "B"},
		{Value: "C", Label: "C"},
		{Value: "D", Label: "D"},
		{Value: "E", Label: "E"},
		{Value: "F", Label: "F"},
		{Value: "unknown", Label: "not known yet"},
	}},
	{Name: "stage", Label: "Stage", Choices: []ui.Choice{
		{Label: "any stage"},
		{Value: string(dmarcd.StageNone), Label: "no record"},
		{Value: string(dmarcd.StageMonitoring), Label: "monitoring"},
		{Value: string(dmarcd.StagePartial), Label: "partly enforced"},
		{Value: string(dmarcd.StageEnforced), Label: "enforced"},
		{Value: string(dmarcd.StageParked), Label: "parked"},
		{Value: "unknown", Label: "not known yet"},
	}},
	{Name: "next", Label: "Next", Choices: []ui.Choice{
		{Label: "any next step"},
		{Value: service.NextAct, Label: "needs you"},
		{Value: service.NextNothing, Label: "nothing to do"},
		{Value: "unknown", Label: "not known yet"},
	}},
}

// postureValue returns the field of a filter by its name in the query.
func postureValue(f *service.PostureFilter, name string) *string {
	return map[string]*string{"search": &f.Search, "policy": &f.Policy, "grade": &f.Grade, "stage": &f.Stage, "next": &f.Next}[name]
}

// domainsQuery returns the filter and the order in a query. A value that does not exist matches
// nothing.
func domainsQuery(query url.Values) (service.PostureFilter, ui.Sorting) {
	order := ui.NewSorting(domainsPath, query, "name", "grade", "policy", "stage", "-messages", "passing")
	filter := service.PostureFilter{Sort: order.By}
	for _, name := range filterNames {
		*postureValue(&filter, name) = query.Get(name)
	}
	return filter, order
}

func (s *Web) domains(c *site.Call) error {
	return s.showDomains(c, http.StatusOK, nil, bulkView{})
}

// showDomains renders the list. selected are the domains with a checked box.
func (s *Web) showDomains(c *site.Call, status int, selected []string, bulk bulkView) error {
	query := c.R.URL.Query()
	filter, order := domainsQuery(query)
	page := site.PageNumber(query)
	filter.Offset, filter.Limit = (page-1)*domainsPerPage, domainsPerPage
	if c.WantsCSV("domains") {
		filter.Offset, filter.Limit = 0, maxCSVRows
	}
	rows, err := c.Team.Postures(c.R.Context(), filter)
	if err != nil {
		return err
	}
	trends, err := s.trendsOf(c, rows)
	if err != nil {
		return err
	}
	counts, err := c.Team.PostureCounts(c.R.Context(), filter)
	if err != nil {
		return err
	}
	tags, err := newTagChoice(c)
	if err != nil {
		return err
	}
	view := domainsView{Path: domainsPath, Search: filter.Search, Tag: tags, Table: posturesTable(c, rows, trends, order, selected), Bulk: bulk}
	view.Hidden = ui.HiddenFields(query, append([]string{"tag"}, filterNames...)...)
	view.count(filter, counts, query)
	if filter.Search != "" {
		all, err := c.Team.PostureCounts(c.R.Context(), service.PostureFilter{})
		if err != nil {
			return err
		}
		view.All = countDomains(all, nil)
	}
	view.Pager = ui.NumberedPager(domainsPath, query, page, domainsPerPage, view.Matching)
	if slices.ContainsFunc(append([]string{"tag"}, filterNames...), query.Has) {
		view.Clear = ui.WithQuery(domainsPath, query, "search", "", "policy", "", "grade", "", "stage", "", "next", "", "tag", "", "page", "")
	}
	view.Bulk.Path = ui.WithQuery(domainsPath+"/bulk", query)
	view.Bulk.Matching, view.Bulk.MayEdit, view.Bulk.MayDelete = view.Matching, c.Viewer.MayEdit(), c.Viewer.May(site.AccessOwn)
	frame := domainsFrame("domains", "Domains")
	if c.WantsFragment() {
		return c.Fragment(frame, "domainlist", view)
	}
	return c.Render(status, frame, view, view.Table)
}

func domainsFrame(template, title string) site.Page {
	return site.Page{Template: template, Title: title, Section: "Domains"}
}

// countDomains counts the domains that a function selects, nil for all.
func countDomains(counts []service.PostureCount, selects func(service.PostureCount) bool) (n int) {
	for _, c := range counts {
		if selects == nil || selects(c) {
			n += c.Domains
		}
	}
	return n
}

// count fills the counts. Those of a filter are of the domains that match all others.
func (v *domainsView) count(filter service.PostureFilter, counts []service.PostureCount, query url.Values) {
	v.All, v.Matching = countDomains(counts, nil), countDomains(counts, filter.Matches)
	for _, f := range domainsFilters {
		f.Value = *postureValue(&filter, f.Name)
		for _, choice := range f.Choices[1:] {
			chosen := filter
			*postureValue(&chosen, f.Name) = choice.Value
			n := countDomains(counts, chosen.Matches)
			current := choice.Value == f.Value
			if n == 0 && !current {
				continue
			}
			href := ui.WithQuery(v.Path, query, f.Name, choice.Value, "page", "", "after", "")
			if current { // once more removes the filter
				href = ui.WithQuery(v.Path, query, f.Name, "", "page", "", "after", "")
			}
			f.Counts = append(f.Counts, domainsCount{Label: choice.Label, Domains: n, Href: href, Current: current})
		}
		v.Filters = append(v.Filters, f)
	}
}

// trendsOf returns the messages of domains for each of the 30 days of their postures; none for a file.
func (s *Web) trendsOf(c *site.Call, rows []service.PostureRow) (map[dmarcd.DomainID][]int64, error) {
	if len(rows) > domainsPerPage {
		return nil, nil
	}
	period := ui.PeriodOf(nil, s.options.Now())
	domains := make([]dmarcd.DomainID, len(rows))
	for i := range rows {
		domains[i] = rows[i].ID
	}
	counted, err := c.Team.DomainTrends(c.R.Context(), domains, period.Days())
	trends := map[dmarcd.DomainID][]int64{}
	for domain, days := range counted {
		trends[domain] = trendOf(days, period)
	}
	return trends, err
}

// posturesTable lists domains with their postures.
func posturesTable(c *site.Call, rows []service.PostureRow, trends map[dmarcd.DomainID][]int64, order ui.Sorting, selected []string) ui.Table {
	t := ui.Table{
		ID: "domains", Caption: "Domains", CSV: ui.WithQuery(domainsPath, c.R.URL.Query(), "csv", "domains", "page", ""),
		Columns: []ui.Column{
			order.Column("Name", "name", false), order.Column("Grade", "grade", false), order.Column("Policy", "policy", false), order.Column("Stage", "stage", false),
			order.Column("Messages", "messages", true),
			{Title: "Trend"},
			order.Column("Yours passing", "passing", true),
			{Title: "Next", Wide: true},
			{Title: "Tags"},
		},
		Empty: ui.Empty{Title: "No domain matches", Advice: "Change or clear the filter above.", Action: ui.Link{Text: "Show all domains", Href: domainsPath}},
	}
	if len(filterValues(c.R.URL.Query())) == 0 && c.Tag == "" {
		t.Empty = ui.Empty{Title: "No domains yet", Advice: "Add the domains that send mail, and those that should not.", Action: ui.Link{Text: "Add domains", Href: domainsPath + "/new"}}.OfferedTo(c.Viewer.MayEdit())
	}
	t.Columns[0].Wide = true
	for _, row := range rows {
		href := c.Link(domainPath(row.Name))
		name := ui.LinkTo(row.Name, href).Copyable()
		name.Pick, name.Picked = row.Name, slices.Contains(selected, row.Name)
		passing, messages := ui.Percent(row.YoursPassing, row.Yours), ui.Count(row.Messages)
		if row.Stage == "" {
			passing, messages = ui.Text("–"), ui.Text("–")
		}
		next := nextStep(row.Posture)
		if row.Title != "" {
			next.Href = href
		}
		var tags []ui.Link
		for _, tag := range row.Tags {
			tags = append(tags, ui.Link{Text: tag, Href: ui.WithQuery(domainsPath, url.Values{"tag": {tag}})})
		}
		t.Rows = append(t.Rows, []ui.Cell{
			name, ui.Grade(row.Grade).Linked(c.Link(domainPath(row.Name) + "/dns")), DomainHead{Domain: row.Domain, Applied: row.EffectivePolicy()}.PolicyBadge(), postureBadge(row.Posture),
			messages, ui.Spark(trends[row.ID]), passing, next, ui.Links(tags...),
		})
	}
	if !slices.ContainsFunc(rows, func(row service.PostureRow) bool { return len(row.Tags) > 0 }) {
		return t.Without("Tags")
	}
	return t
}

// nextStep is the next action of a posture.
func nextStep(p dmarcd.Posture) ui.Cell {
	switch {
	case p.Title != "":
		return ui.Text(p.Title)
	case p.Stage != "":
		return ui.Text("Nothing to do")
	}
	return ui.Text("–")
}

// filterValues returns the filters that a query sets.
func filterValues(query url.Values) (set []string) {
	for _, name := range filterNames {
		if query.Get(name) != "" {
			set = append(set, query.Get(name))
		}
	}
	return set
}

// postureBadge is the name of the stage of a posture.
func postureBadge(p dmarcd.Posture) ui.Cell {
	if p.Stage == "" {
		return ui.Cell{Kind: ui.CellBadge, Text: "not known yet", Tone: "info"}
	}
	return stageBadge(p.Stage, p.Action)
}

// maxSelected is the number of domains that can be changed at once.
const maxSelected = dmarcd.MaxBulk

// selectedDomains returns the rows that the form selects: those with a checked box, or all that match
// the filter in the URL.
func selectedDomains(c *site.Call, written url.Values) ([]service.PostureRow, error) {
	filter, _ := domainsQuery(c.R.URL.Query())
	filter.Limit = maxSelected + 1
	all := written.Get("all") != ""
	if !all && len(written["domain"]) == 0 {
		return nil, &dmarcd.InvalidError{Field: "domain", Message: "Select at least one domain."}
	}
	rows, err := c.Team.Postures(c.R.Context(), filter)
	if err != nil {
		return nil, err
	}
	if all && len(rows) > maxSelected {
		return nil, &dmarcd.InvalidError{Field: "domain", Message: "At most " + phrase.Number(maxSelected) + " domains can be changed at once. Narrow the filter."}
	}
	if !all {
		rows = slices.DeleteFunc(rows, func(row service.PostureRow) bool { return !slices.Contains(written["domain"], row.Name) })
	}
	if len(rows) == 0 {
		return nil, &dmarcd.InvalidError{Field: "domain", Message: "The selected domains are no longer in the list. Select others."}
	}
	return rows, nil
}

// bulk does something with the selected domains.
func (s *Web) bulk(c *site.Call, written url.Values) error {
	rows, err := selectedDomains(c, written)
	if err == nil {
		names := make([]string, len(rows))
		for i, row := range rows {
			names[i] = row.Name
		}
		tags := strings.FieldsFunc(written.Get("tags"), func(r rune) bool { return r == ',' || r == ' ' })
		done := func(err error, what string) error {
			return doneOr(c, err, ui.WithQuery(domainsPath, c.R.URL.Query(), "done", what))
		}
		switch written.Get("action") {
		case "tag":
			_, err = c.Team.TagDomains(c.R.Context(), names, tags, nil)
			err = done(err, "domains-tagged")
		case "untag":
			_, err = c.Team.TagDomains(c.R.Context(), names, nil, tags)
			err = done(err, "domains-tagged")
		case "check":
			_, err = c.Team.CheckSoon(c.R.Context(), names)
			err = done(err, "domains-checked")
		case "export":
			_, order := domainsQuery(c.R.URL.Query())
			return c.CSV(posturesTable(c, rows, nil, order, nil))
		case "delete":
			written.Del("confirm") // see deleteSelected
			return s.deleteDomains(c, written, names)
		default:
			return site.ErrBadForm
		}
	}
	var invalid *dmarcd.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	return s.showDomains(c, http.StatusUnprocessableEntity, written["domain"], bulkView{Error: invalid.Message, Field: invalid.Field, Tags: written.Get("tags"), All: written.Get("all") != ""})
}

// doneOr redirects to a target, unless there was an error.
func doneOr(c *site.Call, err error, target string) error {
	if err != nil {
		return err
	}
	return c.Redirect(target)
}

// deleteView asks for the confirmation to delete domains.
type deleteView struct {
	Names []string
	More  int
	Form  ui.Form
}

// maxNamed is the number of domains that the confirmation names.
const maxNamed = 100

// deleteSelected deletes the selected domains.
func (s *Web) deleteSelected(c *site.Call, written url.Values) error {
	rows, err := selectedDomains(c, written)
	if err != nil {
		return err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row.Name
	}
	return s.deleteDomains(c, written, names)
}

// deleteDomains deletes domains once their number is entered: the data cannot be restored.
func (s *Web) deleteDomains(c *site.Call, written url.Values, names []string) error {
	number := strconv.Itoa(len(names))
	form := ui.Deletion(ui.WithQuery(domainsPath+"/delete", c.R.URL.Query()), phrase.Count(int64(len(names)), "domain"), number)
	if written.Get("all") != "" {
		form.Fields = append(form.Fields, ui.Field{Name: "all", Type: "hidden", Value: "yes"})
	} else {
		for _, name := range names {
			form.Fields = append(form.Fields, ui.Field{Name: "domain", Type: "hidden", Value: name})
		}
	}
	status := http.StatusOK
	if written.Has("confirm") {
		if written.Get("confirm") == number {
			_, err := c.Team.DeleteDomains(c.R.Context(), names)
			return doneOr(c, err, ui.WithQuery(domainsPath, c.R.URL.Query(), "page", "", "done", "domains-deleted"))
		}
		status = http.StatusUnprocessableEntity
		form.Fields[0].Value, form.Fields[0].Error = written.Get("confirm"), "The number does not match: "+phrase.Count(int64(len(names)), "domain")+" would be deleted."
	}
	view := deleteView{Names: names[:min(len(names), maxNamed)], More: max(len(names)-maxNamed, 0), Form: form}
	return c.Render(status, domainsFrame("domains_delete", "Delete domains"), view)
}
