package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/web/site"
	"github.com/dmarcd/dmarcd/internal/web/ui"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// ReportDocument is a report for display.
type ReportDocument struct {
	dmarcd.Report
	// Facts are the metadata and the policy of the report, in order.
	Facts []insight.Fact
	// Records are the records of an aggregate report, up to the limit; Next is the cursor
	// after them, "" at the end.
	Records []aggregate.Record
	Next    string
	// Policies are the policies of a TLS report.
	Policies []wire.TLSPolicy
}

type reportView struct {
	Report   ReportDocument
	Table    ui.Table
	Policies ui.Table
	Failures ui.Table
	Original string
	Actions  []ui.Action
	Pager    ui.Pager
}

const recordsPerPage = 250

// backToReports links to the list that contains the report: the reports of the domain in the
// query, or of the team.
func backToReports(c *site.Call) ui.Link {
	if domain := normalDomain(c.R.URL.Query().Get("domain")); domain != "" {
		return ui.Link{Text: "Reports of " + domain, Href: c.Link(domainPath(domain) + "/reports")}
	}
	return ui.Link{Text: "Reports", Href: c.Link(Prefix + "/reports")}
}

func (s *Web) report(c *site.Call, id dmarcd.ReportID) error {
	query := c.R.URL.Query()
	after, limit := query.Get("after"), recordsPerPage
	if c.WantsCSV("records") {
		after, limit = "", maxCSVRows
	}
	found, err := reportDocument(c, id, after, limit)
	if err != nil {
		return err
	}
	path := Prefix + "/reports/" + found.ID.String()
	sender, err := s.reportSenders(c, found)
	if err != nil {
		return err
	}
	view := reportView{
		Report: found, Original: path + "/original", Actions: reportActions(c, found.Report, path), Pager: ui.CursorPager(path, query, found.Next),
		Table:    recordTable(c, found.Records, sender, path+"?csv=records"),
		Policies: policyTable(found.Policies, path+"?csv=policies"), Failures: failureTable(found.Policies, path+"?csv=failures"),
	}
	return c.Render(http.StatusOK, site.Page{
		Template: "report", Title: "Report by " + found.Organization, Section: "Reports",
		Trail: []ui.Link{backToReports(c)},
	}, view, view.Table, view.Policies, view.Failures)
}

// sentDays is the period of the page of a sender that a report links to.
const sentDays = 30

// reportSenders returns the senders of addresses of a report, as links; nil if it does not count.
func (s *Web) reportSenders(c *site.Call, found ReportDocument) (func(address string) (ui.Link, bool), error) {
	if found.Kind != dmarcd.KindAggregate || found.State != dmarcd.ReportCounted || found.Unclaimed {
		return nil, nil
	}
	domain, err := teamDomain(c, found.Domain)
	if err != nil || domain == "" {
		return nil, err
	}
	day := dmarcd.DayOf(found.Begin)
	mail, err := c.Mail(domain, ui.Period{From: day, To: day})
	if err != nil {
		return nil, err
	}
	addresses := make([]string, len(found.Records))
	for i, r := range found.Records {
		addresses[i] = addressText(r.Source)
	}
	senders, err := mail.SendersOf(c.R.Context(), addresses)
	if err != nil || len(senders) == 0 {
		return nil, err
	}
	asked := mailQuery{Carried: site.Carried(c.R.URL.Query()), Tag: c.Tag, Domain: domain, Period: ui.Period{From: day - sentDays + 1, To: day}, Query: insight.Query{Group: insight.GroupSender}}
	return func(address string) (ui.Link, bool) {
		row, known := senders[addressText(address)]
		return ui.Link{Text: row.Name, Href: senderPath(asked, row.Key)}, known
	}, nil
}

// addressText returns an address as rollups have it.
func addressText(written string) string {
	if addr, err := netip.ParseAddr(strings.TrimSpace(written)); err == nil {
		return addr.Unmap().String()
	}
	return written
}

// teamDomain returns the domain of the team that is a name or its nearest parent, "" for none.
func teamDomain(c *site.Call, name string) (string, error) {
	for strings.Contains(name, ".") {
		domain, err := c.Team.Domain(c.R.Context(), name)
		if err == nil {
			return domain.Name, nil
		}
		if !errors.Is(err, dmarcd.ErrNotFound) {
			return "", err
		}
		_, name, _ = strings.Cut(name, ".")
	}
	return "", nil
}

// reportByID returns a report, and reserves its memory.
func reportByID(c *site.Call, id dmarcd.ReportID) (dmarcd.Report, error) {
	err := c.Reserve(func(ctx context.Context) (context.Context, func(), error) { return c.Team.ReserveReport(ctx, id) })
	if err != nil {
		return dmarcd.Report{}, err
	}
	return c.Team.Report(c.R.Context(), id)
}

// reportDocument returns a report with up to limit records after a cursor.
func reportDocument(c *site.Call, id dmarcd.ReportID, after string, limit int) (ReportDocument, error) {
	position, err := parseRecordCursor(after)
	if err != nil {
		return ReportDocument{}, err
	}
	report, err := reportByID(c, id)
	if err != nil {
		return ReportDocument{}, err
	}
	document := newDocument(report)
	if report.Kind != dmarcd.KindAggregate {
		return document, nil
	}
	more := true
	for part := 0; more && len(document.Records) < limit && part < maxRecordParts; part++ {
		var records []service.Record
		if records, more, err = c.Team.Records(c.R.Context(), report.ID, position, limit-len(document.Records)); err != nil {
			return ReportDocument{}, err
		}
		for _, stored := range records {
			document.Records = append(document.Records, stored.Record)
			position = stored.Cursor
		}
	}
	if more {
		document.Next = wire.FormatRecordCursor(position.Share, position.N)
	}
	return document, nil
}

// maxRecordParts limits the reads for a page. Each read returns few records if their texts are long.
const maxRecordParts = 16

func policyTable(policies []wire.TLSPolicy, csv string) ui.Table {
	t := ui.Table{
		ID: "policies", Caption: "Policies", CSV: csv,
		Columns: []ui.Column{
			{Title: "Policy", Wide: true, Note: "Text"},
			{Title: "Domain"},
			{Title: "Mail servers", Wide: true},
			{Title: "Successful", Numeric: true},
			{Title: "Failed", Numeric: true},
		},
	}
	types := map[string]string{"tlsa": "DANE", "sts": "MTA-STS", "no-policy-found": "none found"}
	for _, p := range policies {
		t.Rows = append(t.Rows, []ui.Cell{
			ui.Text(cmp.Or(types[string(p.Type)], string(p.Type))).Noted(strings.Join(p.Strings, " ")), ui.Text(string(p.Domain)), ui.Text(strings.Join(p.MXHosts, ", ")), ui.Count(p.Successful), ui.Count(p.Failed),
		})
	}
	return t
}

func failureTable(policies []wire.TLSPolicy, csv string) ui.Table {
	t := ui.Table{
		ID: "failures", Caption: "Failed sessions", CSV: csv,
		Columns: []ui.Column{
			{Title: "Policy"},
			{Title: "Domain"},
			{Title: "Result"},
			{Title: "Server", Wide: true},
			{Title: "Sent from"},
			{Title: "Sessions", Numeric: true},
		},
		Empty: ui.Empty{Title: "No session failed", Advice: "Every session of this report succeeded.", Action: ui.Link{}},
	}
	for _, p := range policies {
		for _, f := range p.DetailList {
			t.Rows = append(t.Rows, []ui.Cell{
				ui.Text(string(p.Type)), ui.Text(string(p.Domain)), {Kind: ui.CellBadge, Text: string(f.ResultType), Tone: "bad"}, ui.Code(string(f.ReceivingMXHostname)), ui.Code(string(f.SendingMTAIP)), ui.Count(f.FailedSessions),
			})
		}
	}
	return t
}

func (s *Web) original(c *site.Call, id dmarcd.ReportID) error {
	report, err := reportByID(c, id)
	if err != nil {
		return err
	}
	original, err := c.Team.ReportOriginal(c.R.Context(), report.ID)
	if err != nil {
		return err
	}
	return download(c, report.ID.String(), original)
}

// download sends untrusted content, always as a file.
func download(c *site.Call, name string, original dmarcd.StoredOriginal) error {
	h := c.W.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.FormatInt(original.Size, 10))
	if c.R.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(c.W, intake.Unpack(original.Packed)); err != nil {
		panic(http.ErrAbortHandler) // a truncated file must not look complete
	}
	return nil
}

// reportActions returns the buttons of a report that the viewer may use. An unclaimed report is
// not counted, so it cannot be excluded.
func reportActions(c *site.Call, r dmarcd.Report, path string) []ui.Action {
	if !c.Viewer.MayEdit() {
		return nil
	}
	remove := ui.Action{
		Label: "Delete report", Path: path + "/delete", Danger: true,
		Question: "Delete this report and its original? Its messages are no longer counted.",
	}
	if r.Unclaimed && r.State == dmarcd.ReportCounted {
		remove.Question = "Delete this report and its original?"
		return []ui.Action{remove}
	}
	count := ui.Action{Label: "Count this report", Path: path + "/counted", Name: "counted", Value: "true"}
	switch r.State {
	case dmarcd.ReportCounted:
		count = ui.Action{Label: "Exclude from counts", Path: path + "/counted", Name: "counted", Value: "false"}
	case dmarcd.ReportHeld:
		count.Label = "Release and count"
	case dmarcd.ReportReplaced:
		count.Label = "Count this version"
	case dmarcd.ReportExcluded:
	}
	return []ui.Action{count, remove}
}

func (s *Web) setCounted(c *site.Call, id dmarcd.ReportID, form url.Values) error {
	counted, done := form.Get("counted") == "true", "report-excluded"
	if _, err := c.Team.SetCounted(c.R.Context(), id, counted); err != nil {
		return err
	}
	if counted {
		done = "report-included"
	}
	return c.Done(Prefix+"/reports/"+id.String(), done)
}

// newDocument returns a report for display, without its records.
func newDocument(report dmarcd.Report) ReportDocument {
	document := ReportDocument{Report: report}
	switch r := wire.NewReport("", report).(type) { // nil if it has expired
	case wire.AggregateReport:
		document.Facts = aggregateFacts(r)
	case wire.FailureReport:
		document.Facts = failureFacts(r)
	case wire.TLSReport:
		var f factList
		f.add("Contact", r.ContactInfo)
		document.Facts, document.Policies = f, r.Policies
	}
	return document
}

// factList collects the facts in a report.
type factList []insight.Fact

func (f *factList) add(name string, value *string) {
	if value != nil && *value != "" {
		*f = append(*f, insight.Fact{Name: name, Value: *value})
	}
}

func (f *factList) addAll(name string, values []string) {
	joined := strings.Join(values, "; ")
	f.add(name, &joined)
}

func aggregateFacts(r wire.AggregateReport) []insight.Fact {
	var f factList
	f.add("Contact", r.Email)
	f.add("More information", r.ExtraContact)
	policy := []string{}
	for _, tag := range []struct {
		name  string
		value *string
	}{
		{"p", r.P},
		{"sp", r.SP},
		{"np", r.NP},
		{"adkim", r.ADKIM},
		{"aspf", r.ASPF},
		{"pct", r.Percent},
		{"fo", r.FailureOptions},
		{"psd", r.PSD},
		{"testing", r.Testing},
	} {
		if tag.value != nil && *tag.value != "" {
			policy = append(policy, tag.name+"="+*tag.value)
		}
	}
	f.addAll("Policy seen by the reporter", policy)
	if r.DiscoveryMethod != nil {
		found := cmp.Or(map[string]string{"treewalk": "by the DNS tree walk (RFC 9989)", "psl": "by the Public Suffix List (RFC 7489)"}[strings.ToLower(*r.DiscoveryMethod)], *r.DiscoveryMethod)
		f.add("How the policy was found", &found)
	}
	f.add("Generator", r.Generator)
	f.addAll("Errors", r.Errors)
	form := map[string]string{"9990": "RFC 9990", "7489": "RFC 7489", "draft": "a draft before RFC 7489"}[r.Flavour]
	f.add("Report format", &form)
	addresses := strconv.Itoa(r.Sources)
	f.add("Addresses", &addresses)
	return f
}

// upper writes the names of mechanisms, such as dkim, as people do.
func upper(text *string) *string {
	if text == nil {
		return nil
	}
	return new(strings.ToUpper(*text))
}

func failureFacts(r wire.FailureReport) []insight.Fact {
	var f factList
	f.add("Failed check", upper(r.AuthFailure))
	f.add("Not aligned", upper(r.IdentityAlignment))
	f.add("Sent from", r.SourceIP)
	f.add("From", r.From)
	f.add("Envelope sender", r.OriginalMailFrom)
	f.addAll("Envelope recipients", r.OriginalRcptTo)
	f.add("Message id", r.MessageID)
	f.add("Result", r.DeliveryResult)
	f.add("Authentication results", r.AuthenticationResults)
	f.add("DKIM domain", r.DKIMDomain)
	f.add("DKIM selector", r.DKIMSelector)
	f.add("DKIM identity", r.DKIMIdentity)
	f.addAll("SPF records", r.SPFDNS)
	f.add("Reported by", r.ReportingMTA)
	f.add("Program", r.UserAgent)
	return f
}
