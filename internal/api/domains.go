package api

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) addDomain(c *call) error {
	body := readObject(c, "domain", `{"domain": "example.com"}`)
	input := body.text("domain")
	if body.err != nil {
		return body.err
	}
	domain, err := c.service.AddDomain(c.r.Context(), input)
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		return errDomainExists
	case errors.As(err, new(*dmarcd.QuotaError)):
		return errQuota
	case err != nil:
		return err
	}
	c.w.Header().Set("Location", a.baseURL+"/domains/"+domain.Name)
	return c.writeJSON(http.StatusCreated, wire.NewDomain(domain))
}

func (a *API) getDomain(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	return c.writeCacheable(wire.NewDomain(domain))
}

func (a *API) deleteDomain(c *call) error {
	return c.deleted(c.service.DeleteDomain(c.r.Context(), c.params.Get("domain")), errNoSuchDomain)
}

// verifyError is the shape of the one error that has a code.
type verifyError struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

func (a *API) verifyDomain(c *call) error {
	domain, check, err := c.service.Verify(c.r.Context(), c.params.Get("domain"))
	if errors.Is(err, dmarcd.ErrNotFound) {
		c.w.Header().Set(errorHeader, errNoSuchDomain.code)
		return c.writeJSON(http.StatusNotFound, verifyError{Error: errNoSuchDomain.message, Code: errNoSuchDomain.code})
	}
	if err != nil {
		return err
	}
	outcome := "inconclusive"
	if check.Conclusive {
		outcome = "conclusive"
	}
	c.w.Header().Set("Dmarcd-Check", outcome)
	return c.writeJSON(http.StatusOK, wire.NewDomain(domain))
}
