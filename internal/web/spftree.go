package web

import (
	"errors"
	"net/http"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// The limits of receivers (RFC 7208 §4.6.4).
const (
	maxSPFLookups = 10
	maxSPFVoids   = 2
)

type spfView struct {
	domainView
	// Seen is false where nobody has looked yet.
	Seen bool
	SPF  wire.SPF
	// MaxLookups and MaxVoids are where receivers stop.
	MaxLookups, MaxVoids int
}

func (s *Web) spfTree(c *call) error {
	page, head, err := s.domainPage(c, "spf", "SPF")
	if err != nil {
		return err
	}
	view := spfView{domainView: head, MaxLookups: maxSPFLookups, MaxVoids: maxSPFVoids}
	latest, err := c.latestCheck(head.Head.Name)
	switch {
	case err == nil:
		view.Seen, view.SPF = true, latest.SPF
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	return c.render(http.StatusOK, page, view)
}
