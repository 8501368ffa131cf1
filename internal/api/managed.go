package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

func newManagedRecord(r service.ManagedRecord) wire.ManagedRecord {
	return wire.NewManagedRecord(r.RecordVersion, r.Owner, r.Target, r.State, r.Served, r.Note, r.Proposal)
}

func (a *API) listManagedRecords(c *call) error {
	list := whole(func(t *service.Team, ctx context.Context) ([]service.ManagedRecord, error) {
		return t.ManagedRecords(ctx, c.params.Get("domain"))
	}, newManagedRecord, func(r service.ManagedRecord) string { return string(r.Kind) })
	return missing(list(c), errNoSuchDomain)
}

// listRecordVersions lists the versions of a managed record, the latest first.
func (a *API) listRecordVersions(c *call) error {
	kind, err := dmarcd.ParseRecordKind(c.params.Get("kind"))
	if err != nil {
		return errNoSuchRecord
	}
	list := whole(func(t *service.Team, ctx context.Context) ([]dmarcd.RecordVersion, error) {
		versions, err := t.RecordVersions(ctx, c.params.Get("domain"))
		versions = slices.DeleteFunc(versions, func(v dmarcd.RecordVersion) bool { return v.Kind != kind })
		if err == nil && len(versions) == 0 {
			err = errNoSuchRecord
		}
		return versions, err
	}, wire.NewRecordVersion, func(v dmarcd.RecordVersion) string { return fmt.Sprintf("%019d", math.MaxInt64-v.Version) })
	return missing(list(c), errNoSuchRecord)
}

// listRecordProposals lists what waits for approval.
func (a *API) listRecordProposals(c *call) error {
	list := whole(func(t *service.Team, ctx context.Context) ([]dmarcd.RecordProposal, error) {
		return t.RecordProposals(ctx, c.params.Get("domain"))
	}, func(p dmarcd.RecordProposal) wire.RecordProposal { return wire.NewRecordProposal(p.RecordVersion) }, func(p dmarcd.RecordProposal) string { return string(p.Kind) })
	return missing(list(c), errNoSuchDomain)
}

func (a *API) publishRecord(c *call) error {
	body := readObject(c, "base", `{"base": 1, "record": "v=DMARC1; p=quarantine", "reason": "all senders pass"}`)
	base := required[uint32](body, "base", "the number of the version that is replaced, or 0 for a record that is not managed yet")
	var v dmarcd.RecordVersion
	if body.states("record") {
		v.Content = body.text("record")
	}
	if body.states("reason") {
		v.Reason = body.text("reason")
	}
	if body.err != nil {
		return body.err
	}
	var err error
	if v.Kind, err = dmarcd.ParseRecordKind(c.params.Get("kind")); err != nil {
		return errNoSuchRecord
	}
	answer := a.bodyRead(c.w) // the server of the domain may be slow
	published, err := c.service.PublishRecord(c.r.Context(), c.params.Get("domain"), int64(base), v)
	answer()
	switch {
	case errors.Is(err, dmarcd.ErrConflict):
		return errOtherVersion
	case err != nil:
		return missing(err, errNoSuchRecord)
	}
	if published.State == dmarcd.RecordProposed {
		return c.writeJSON(http.StatusAccepted, wire.NewRecordProposal(published.RecordVersion))
	}
	return c.writeJSON(http.StatusOK, newManagedRecord(published))
}

func (a *API) stopRecord(c *call) error {
	kind, err := dmarcd.ParseRecordKind(c.params.Get("kind"))
	if err != nil {
		return errNoSuchRecord
	}
	return c.deleted(c.service.StopRecord(c.r.Context(), c.params.Get("domain"), kind), errNoSuchRecord)
}

func (a *API) getRecordTarget(c *call) error {
	target, err := c.service.RecordTarget(c.r.Context(), c.params.Get("domain"))
	if err != nil {
		return missing(err, errNoSuchTarget)
	}
	return c.writeCacheable(newRecordTarget(c, target))
}

// newRecordTarget returns the shape of the target of the domain of the path.
func newRecordTarget(c *call, t dmarcd.PublishTarget) wire.RecordTarget {
	domain, _ := dmarcd.ParseName(c.params.Get("domain")) // it was found
	return wire.NewRecordTarget(domain, t)
}

// setRecordTarget tries the server first. Its key is in no answer.
func (a *API) setRecordTarget(c *call) error {
	body := readObject(c, "kind", `{"kind": "rfc2136", "server": "ns1.example.com", "key": "hmac-sha256:dmarcd:…"}`)
	wanted := dmarcd.PublishTarget{Kind: dmarcd.TargetKind(body.text("kind")), Server: body.text("server")}
	key := body.text("key")
	if body.states("zone") {
		wanted.Zone = body.text("zone")
	}
	if body.err != nil {
		return body.err
	}
	answer := a.bodyRead(c.w)
	target, err := c.service.SetRecordTarget(c.r.Context(), c.params.Get("domain"), wanted, key)
	answer()
	if err != nil {
		return missing(err, errNoSuchDomain)
	}
	return c.writeJSON(http.StatusOK, newRecordTarget(c, target))
}

func (a *API) removeRecordTarget(c *call) error {
	return c.deleted(c.service.RemoveRecordTarget(c.r.Context(), c.params.Get("domain")), errNoSuchTarget)
}
