package web

import (
	"github.com/dmarcd/dmarcd/internal/service"
)

// startView is the guide for the first hour of a team.
type startView struct {
	service.Start
	MayEdit bool
	// Setup leads to the guide of a domain whose records are to be published, "" if there
	// is none.
	Setup string
}

// start returns the guide for the first hour, nil for a team that has received a report.
func (c *call) start() (*startView, error) {
	start, err := c.team.Start(c.r.Context())
	if err != nil || start.Domains > 0 && start.Reported {
		return nil, err
	}
	view := &startView{Start: start, MayEdit: c.viewer.MayEdit()}
	if start.Open != "" {
		view.Setup = domainPath(start.Open) + "/setup"
	}
	return view, nil
}

func (s *Web) addSample(c *call) error {
	if err := c.team.AddSample(c.r.Context()); err != nil {
		return err
	}
	return c.done(Prefix+"/", "sample-added")
}

func (s *Web) deleteSample(c *call) error {
	if err := c.team.DeleteSample(c.r.Context()); err != nil {
		return err
	}
	return c.done(Prefix+"/", "sample-deleted")
}
