package api

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// maxBulkBody is the size limit of the body of changeDomains: 10,000 of the longest names fit.
const maxBulkBody = 4 << 20

// changeDomains adds or deletes many domains, with a result for each name. No DNS is asked.
func (a *API) changeDomains(c *call) error {
	body := readObjectOf(c, maxBulkBody, "add", `{"add": ["example.com"]}`)
	member, change := "add", c.service.AddNames
	switch {
	case body.states("add") == body.states("delete"):
		body.reject("add", `The body must have either the member "add" or the member "delete".`)
	case body.states("delete"):
		member, change = "delete", c.service.DeleteNames
	}
	names := body.texts(member)
	if len(names) == 0 || len(names) > dmarcd.MaxBulk {
		body.reject(member, `The member "`+member+`" must have 1 to 10,000 names.`)
	}
	if body.err != nil {
		return body.err
	}
	release, err := c.service.ReserveRows(c.r.Context(), len(names)/bulkPerRow)
	if err != nil {
		return err
	}
	defer release()
	results, err := change(c.r.Context(), names)
	switch {
	case errors.As(err, new(*dmarcd.QuotaError)):
		return errQuota
	case err != nil:
		return err
	}
	shape := wire.DomainResults{Items: make([]wire.DomainResult, len(results))}
	for i, r := range results {
		shape.Items[i] = wire.NewDomainResult(r.Domain, string(r.Result), invalidMessage(r))
	}
	return c.writeJSON(http.StatusOK, shape)
}

// bulkPerRow is how many results need as much memory as a row of a list, about.
const bulkPerRow = 40

// invalidMessage says what is wrong with a name, "" if nothing is.
func invalidMessage(r service.NameResult) string {
	var invalid *dmarcd.InvalidError
	if errors.As(r.Err, &invalid) {
		return invalid.Message
	}
	return ""
}
