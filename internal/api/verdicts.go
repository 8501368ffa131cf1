package api

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// setCounted includes a report in the counters or excludes it.
func (a *API) setCounted(c *call) error {
	body := readObject(c, "counted", `{"counted": false}`)
	counted := body.flag("counted")
	if body.err != nil {
		return body.err
	}
	id, err := reservedReport(c)
	if err != nil {
		return err
	}
	report, err := c.service.SetCounted(c.r.Context(), id, counted)
	if err != nil {
		return missing(err, errNoSuchReport)
	}
	records, err := readRecords(c, report.ID, service.RecordCursor{}, maxPage)
	if err != nil {
		return err
	}
	full := wire.NewFullReport(report, records)
	return c.writeJSON(http.StatusOK, full)
}

// setCountedAll is setCounted for all reports of a reporter, of some days, or both.
func (a *API) setCountedAll(c *call) error {
	body := readObject(c, "reporter", `{"reporter": "receiver.example", "counted": false}`)
	var selected service.Selection
	if body.states("reporter") {
		selected.Reporter = body.text("reporter")
		if selected.Reporter == "" || !storable(selected.Reporter) {
			body.reject("reporter", `The member "reporter" must be the name of a reporter.`)
		}
	}
	selected.Days = dmarcd.Days{From: body.day("from"), To: body.day("to")}
	counted := body.has("counted") && body.flag("counted")
	if body.err != nil {
		return body.err
	}
	changed, err := c.service.SetCountedAll(c.r.Context(), selected, counted)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, struct {
		Changed int `json:"changed"`
	}{changed})
}

func (a *API) deleteReport(c *call) error {
	id, err := dmarcd.ParseReportID(c.params.Get("id"))
	if err != nil {
		return errNoSuchReport
	}
	return c.deleted(c.service.DeleteReport(c.r.Context(), id), errNoSuchReport)
}

func (a *API) deleteRejected(c *call) error {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return errNoSuchRejected
	}
	return c.deleted(c.service.DeleteRejected(c.r.Context(), id), errNoSuchRejected)
}

// missing replaces dmarcd.ErrNotFound with a message.
func missing(err error, words *failure) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return words
	}
	return err
}
