package web

import (
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
)

// ReportDocument is a report as it can be read.
type ReportDocument struct {
	dmarcd.Report
	// Facts is what the report says of itself and of the policy, in its order.
	Facts []Fact
	// Records are those of an aggregate report, as many as were asked for; Next is
	// the place behind them, "" at the end.
	Records []Record
	Next    string
	// Policies are those of a TLS report.
	Policies []TLSPolicy
	// Message is what a failure report shows of the message: its header, after
	// redaction.
	Message string
}

// TLSPolicy is a policy in a TLS report, and how sessions did under it.
type TLSPolicy struct {
	Type, Domain        string
	Successful, Failed  int64
	Failures            []TLSFailure
	Policy, MailServers []string
}

// TLSFailure is a sort of failed session.
type TLSFailure struct {
	Result, Server, Address string
	Sessions                int64
}

// Original is a delivery as it was sent.
type Original struct {
	Name string
	// Size is in bytes, -1 where it is not known before it is read.
	Size int64
	Body io.ReadCloser
}

type reportView struct {
	Report ReportDocument
	Table  Table
	// Policies are those of a TLS report.
	Policies Table
	// Failures are those of a TLS report.
	Failures Table
	Original string
	Actions  []Action
	Pager    Pager
}

// recordsPerPage is how many records of a report the page shows at once.
const recordsPerPage = 250

func (s *Web) report(c *call) error {
	query := c.r.URL.Query()
	after, limit := query.Get("after"), recordsPerPage
	if c.wantsCSV("records") {
		after, limit = "", maxCSVRows
	}
	found, err := c.team.Reports.Report(c.r.Context(), c.params["id"], after, limit)
	if err != nil {
		return err
	}
	path := Prefix + "/reports/" + found.ID.String()
	view := reportView{
		Report: found, Original: path + "/original", Actions: verdictActions(c, found.Report, path), Pager: cursorPager(path, query, found.Next),
		Table:    reportRecordTable(found.Records, path+"?csv=records"),
		Policies: policyTable(found.Policies, path+"?csv=policies"), Failures: failureTable(found.Policies, path+"?csv=failures"),
	}
	for _, t := range []Table{view.Table, view.Policies, view.Failures} {
		if c.wantsCSV(t.ID) {
			return c.csv(t)
		}
	}
	return c.render(http.StatusOK, Page{
		Template: "report", Title: "Report by " + found.Organization, Section: "Reports",
		Trail: []Link{{"Reports", Prefix + "/reports"}},
	}, view)
}

func policyTable(policies []TLSPolicy, csv string) Table {
	t := Table{
		ID: "policies", Caption: "Policies", CSV: csv,
		Columns: []Column{
			{Title: "Policy", Wide: true, Note: "Text"},
			{Title: "Domain"},
			{Title: "Mail servers", Wide: true},
			{Title: "Successful", Numeric: true},
			{Title: "Failed", Numeric: true},
		},
	}
	for _, p := range policies {
		t.Rows = append(t.Rows, []Cell{
			text(p.Type).noted(strings.Join(p.Policy, " ")), text(p.Domain), text(strings.Join(p.MailServers, ", ")), count(p.Successful), count(p.Failed),
		})
	}
	return t
}

func failureTable(policies []TLSPolicy, csv string) Table {
	t := Table{
		ID: "failures", Caption: "Failed sessions", CSV: csv,
		Columns: []Column{
			{Title: "Policy"},
			{Title: "Domain"},
			{Title: "Result"},
			{Title: "Server", Wide: true},
			{Title: "Sent from"},
			{Title: "Sessions", Numeric: true},
		},
		Empty: Empty{"No session failed", "Every session was encrypted as the policy asks for.", Link{}},
	}
	for _, p := range policies {
		for _, f := range p.Failures {
			t.Rows = append(t.Rows, []Cell{
				text(p.Type), text(p.Domain), {Kind: CellBadge, Text: f.Result, Tone: "bad"}, code(f.Server), code(f.Address), count(f.Sessions),
			})
		}
	}
	return t
}

func (s *Web) original(c *call) error {
	found, err := c.team.Reports.Original(c.r.Context(), c.params["id"])
	if err != nil {
		return err
	}
	return c.download(found)
}

// download sends what a stranger made: as a file, whatever it is.
func (c *call) download(o Original) error {
	defer func() { _ = o.Body.Close() }() // read-only
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(o.Name)}))
	h.Set("Cache-Control", "no-store")
	if o.Size >= 0 {
		h.Set("Content-Length", strconv.FormatInt(o.Size, 10))
	}
	if c.r.Method == http.MethodHead {
		return nil
	}
	if _, err := io.Copy(c.w, o.Body); err != nil {
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	return nil
}

// fileName keeps of a name what every system can write.
func fileName(name string) string {
	kept := make([]byte, 0, len(name))
	for i := range min(len(name), 200) {
		switch b := name[i]; {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '.' && len(kept) > 0, b == '-', b == '_', b == '!':
			kept = append(kept, b)
		default:
			kept = append(kept, '_')
		}
	}
	if len(kept) == 0 {
		return "report"
	}
	return string(kept)
}
