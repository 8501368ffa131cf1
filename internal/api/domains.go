package api

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func (a *API) addDomain(c *call) error {
	members, err := readObject(c, "domain", `{"domain": "example.com"}`)
	if err != nil {
		return err
	}
	input, err := stringMember(members, "domain")
	if err != nil {
		return err
	}
	name, err := dmarcd.ParseName(input)
	if err != nil {
		return err
	}
	domain, err := c.team.AddDomain(c.r.Context(), name, a.options.Now().Add(dnscheck.CreateGrace))
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		return errDomainExists
	case errors.Is(err, dmarcd.ErrForbidden):
		return errQuota
	case err != nil:
		return err
	}
	a.audit(c, "domain.add", name)
	// The domain is there. Whatever becomes of the look at its DNS, now or
	// by the schedule, does not change that.
	checked, _, err := a.options.Checker.CheckInTime(c.r.Context(), c.team, name, dnscheck.Created)
	switch {
	case err == nil:
		domain = checked
	case !errors.Is(err, dmarcd.ErrNotFound): // deleted meanwhile, by another request
		a.options.Log.WarnContext(c.r.Context(), "first check of a domain not kept", "error", err)
	}
	c.w.Header().Set("Location", a.baseURL+"/domains/"+name)
	writeJSON(c.w, http.StatusCreated, wire.NewDomain(domain))
	return nil
}

func (a *API) getDomain(c *call) error {
	domain, err := namedDomain(c)
	if err != nil {
		return err
	}
	writeCacheable(c, wire.NewDomain(domain))
	return nil
}

func (a *API) deleteDomain(c *call) error {
	name, err := dmarcd.ParseName(c.named)
	if err != nil {
		return errNoSuchDomain
	}
	err = c.team.DeleteDomain(c.r.Context(), name)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return errNoSuchDomain
	}
	if err != nil {
		return err
	}
	a.audit(c, "domain.delete", name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// verifyError is the shape of the one error that has a code.
type verifyError struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

func (a *API) verifyDomain(c *call) error {
	domain, check, err := a.verify(c)
	if errors.Is(err, dmarcd.ErrNotFound) {
		c.w.Header().Set(errorHeader, errNoSuchDomain.code)
		writeJSON(c.w, http.StatusNotFound, verifyError{Error: errNoSuchDomain.message, Code: errNoSuchDomain.code})
		return nil
	}
	if err != nil {
		return err
	}
	outcome := "inconclusive"
	if check.Conclusive {
		outcome = "conclusive"
	}
	c.w.Header().Set("Dmarcd-Check", outcome)
	writeJSON(c.w, http.StatusOK, wire.NewDomain(domain))
	return nil
}

func (a *API) verify(c *call) (dmarcd.Domain, dmarcd.Check, error) {
	name, err := dmarcd.ParseName(c.named)
	if err != nil {
		return dmarcd.Domain{}, dmarcd.Check{}, dmarcd.ErrNotFound
	}
	// Whether the team has the domain is asked first: nobody may have us
	// ask the DNS about names of others.
	if _, err := c.team.Domain(c.r.Context(), name); err != nil {
		return dmarcd.Domain{}, dmarcd.Check{}, err
	}
	return a.options.Checker.CheckInTime(c.r.Context(), c.team, name, dnscheck.Requested)
}
