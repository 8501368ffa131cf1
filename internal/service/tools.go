package service

import (
	"context"
	"errors"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/dnscheck"
	"github.com/dmarcd/dmarcd/internal/facts"
)

// What is tried before it is published; see package dnscheck.
type (
	// Draft is a record to try.
	Draft = dnscheck.Draft
	// Tried is what a check finds with a draft.
	Tried = dnscheck.Tried
	// Part is a protocol with a record.
	Part = dnscheck.Part
)

// The parts whose records can be tried.
const (
	PartDMARC  = dnscheck.PartDMARC
	PartSPF    = dnscheck.PartSPF
	PartMTASTS = dnscheck.PartMTASTS
	PartTLSRPT = dnscheck.PartTLSRPT
	PartBIMI   = dnscheck.PartBIMI
)

// trialTime limits the trial of a record.
const trialTime = 4 * time.Second

// TryRecord returns what a check of any domain would find if the draft were published. Nothing
// is stored. An invalid name is a *dmarcd.InvalidError.
func (t *Team) TryRecord(ctx context.Context, name string, draft Draft) (tried Tried, err error) {
	err = t.examineAny(ctx, name, trialTime, func(ctx context.Context, request dnscheck.Request) {
		tried = t.service.checks.Checker.Try(ctx, request, draft)
	})
	return tried, err
}

// CheckName runs a full check of any domain, whether the team has it or not. Nothing is stored.
// An invalid name is a *dmarcd.InvalidError.
func (t *Team) CheckName(ctx context.Context, name string) (check facts.Check, err error) {
	err = t.examineAny(ctx, name, examineTime, func(ctx context.Context, request dnscheck.Request) {
		check = t.service.checks.Checker.Examine(ctx, request)
	})
	return check, err
}

// examineAny calls examine for any domain, as one of the full checks on request of the team. For a
// domain of the team the request says where its reports should go.
func (t *Team) examineAny(ctx context.Context, name string, limit time.Duration, examine func(context.Context, dnscheck.Request)) error {
	if err := t.may(dmarcd.RightSee); err != nil {
		return err
	}
	name, err := dmarcd.ParseName(name)
	if err != nil {
		return err
	}
	request := dnscheck.Request{Domain: name}
	switch domain, err := t.team.Domain(ctx, name); {
	case err == nil:
		c := t.service.checks
		request.Purpose, request.Parked = domain.Purpose, domain.Parked
		request.ReportAddress, request.TLSReportURIs = domain.ReportAddress(c.ReportDomain), domain.TLSReportURIs(c.ReportDomain, c.BaseURL)
	case !errors.Is(err, dmarcd.ErrNotFound):
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	release, err := t.service.examining.Acquire(ctx, t.team.ID(), 1)
	if err != nil {
		return err
	}
	defer release()
	examine(dns.ForUser(dns.ForClient(ctx, int64(t.team.ID()))), request)
	return nil
}
