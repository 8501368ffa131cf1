package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// setCounted includes a report in the counters or excludes it.
func (a *API) setCounted(c *call) error {
	members, err := readObject(c, "counted", `{"counted": false}`)
	if err != nil {
		return err
	}
	counted, err := boolMember(members, "counted")
	if err != nil {
		return err
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
	members, err := readObject(c, "reporter", `{"reporter": "receiver.example", "counted": false}`)
	if err != nil {
		return err
	}
	var selected service.Selection
	if _, given := members["reporter"]; given {
		if selected.Reporter, err = stringMember(members, "reporter"); err != nil {
			return err
		}
		if selected.Reporter == "" || !storable(selected.Reporter) {
			return &dmarcd.InvalidError{Field: "reporter", Message: `The member "reporter" must be the name of a reporter.`}
		}
	}
	if selected.Days.From, err = dayMember(members, "from"); err != nil {
		return err
	}
	if selected.Days.To, err = dayMember(members, "to"); err != nil {
		return err
	}
	counted := false
	if _, given := members["counted"]; given {
		if counted, err = boolMember(members, "counted"); err != nil {
			return err
		}
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
	if err := c.service.DeleteReport(c.r.Context(), id); err != nil {
		return missing(err, errNoSuchReport)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) deleteRejected(c *call) error {
	id, err := dmarcd.ParseRejectedID(c.params.Get("id"))
	if err != nil {
		return errNoSuchRejected
	}
	if err := c.service.DeleteRejected(c.r.Context(), id); err != nil {
		return missing(err, errNoSuchRejected)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// missing replaces dmarcd.ErrNotFound with a message.
func missing(err error, words *failure) error {
	if errors.Is(err, dmarcd.ErrNotFound) {
		return words
	}
	return err
}

// boolMember returns a member that must be true or false.
func boolMember(members map[string]json.RawMessage, name string) (bool, error) {
	var value *bool
	if err := json.Unmarshal(members[name], &value); err != nil || value == nil {
		return false, &dmarcd.InvalidError{Field: name, Message: `The member "` + name + `" is required and must be true or false.`}
	}
	return *value, nil
}

// dayMember returns a member that is a day, nil if missing or null.
func dayMember(members map[string]json.RawMessage, name string) (*dmarcd.Day, error) {
	raw, given := members[name]
	if !given || string(raw) == "null" {
		return nil, nil //nolint:nilnil // no day is any day
	}
	text, err := stringMember(members, name)
	if err != nil {
		return nil, err
	}
	day, err := dmarcd.ParseDay(text)
	if err != nil {
		return nil, &dmarcd.InvalidError{Field: name, Message: `The member "` + name + `" must be a day such as 2026-11-15.`}
	}
	return &day, nil
}
