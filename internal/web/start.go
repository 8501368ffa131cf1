package web

import "github.com/dmarcd/dmarcd/internal/service"

// startView is the getting-started guide of a team.
type startView struct {
	service.Start
	MayEdit bool
	// Setup is the setup guide of a domain whose records are not published, "" if there
	// is none.
	Setup string
}

// start returns the getting-started guide, nil if the team has received a report.
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
	return c.finish(c.team.AddSample(c.r.Context()), Prefix+"/", "sample-added")
}

func (s *Web) deleteSample(c *call) error {
	return c.finish(c.team.DeleteSample(c.r.Context()), Prefix+"/", "sample-deleted")
}
