package mcp

import (
	"cmp"
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/facts"
	"github.com/dmarcd/dmarcd/internal/insight"
	"github.com/dmarcd/dmarcd/internal/service"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// reads describes a tool that only reads.
func reads(name, title, description string) sdk.Tool {
	return sdk.Tool{Name: name, Title: title, Description: description, Annotations: &sdk.ToolAnnotations{
		Title: title, ReadOnlyHint: true, OpenWorldHint: new(false), DestructiveHint: new(false), IdempotentHint: true,
	}}
}

func (s *Server) addReads() {
	register(s, reads("list_domains", "List domains",
		"Lists the domains of the team with their stage on the way to p=reject, grade, policy, next action, and messages of 30 days."), s.listDomains)
	register(s, reads("get_check", "Get the latest check",
		"Returns what the latest check found in the DNS of a domain: DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT, BIMI, DANE and DNSSEC, and its findings."), getCheck)
	register(s, reads("list_findings", "List findings",
		"Lists the findings of the latest check of a domain: what is wrong, why it matters, how to fix it, and the record to publish."), listFindings)
	register(s, reads("list_changes", "List DNS changes",
		"Lists what checks found changed in the DNS of the domains, newest first."), listChanges)
	register(s, reads("list_senders", "List senders",
		"Lists who sends mail as the domains, most messages first: how much passes DMARC, the class of each sender with its evidence, why mail fails, and the fix. It can list by address, selector, reporter and more instead."), listSenders)
	register(s, reads("get_advice", "Get advice",
		"Returns the stage of a domain, the conclusion, the next action with its effect on mail, and all steps on the way to p=reject."), getAdvice)
	register(s, reads("simulate_policy", "Simulate a policy",
		"Applies a DMARC policy to past mail, of 30 days if no days are given: which legitimate and spoofed messages it would have affected, and the record to publish. It changes nothing."), simulatePolicy)
	register(s, reads("summarize_reports", "Summarize reports",
		"Counts the messages of DMARC reports, and how many of them passed, for a domain or all domains."), summarizeReports)
	register(s, reads("list_reports", "List reports", "Lists the reports received, newest first."), listReports)
	register(s, reads("get_report", "Get a report", "Returns a report with its records, in pages."), getReport)
	register(s, reads("list_events", "List events",
		"Lists what happened to the domains, newest first, such as changed records, new senders and bursts of spoofed mail."), s.listEvents)
	register(s, reads("list_alerts", "List alerts", "Lists the alerts, newest first, with their seq, state and event."), s.listAlerts)
}

type domainsInput struct {
	Search string          `json:"search,omitempty" jsonschema:"a part of the name"`
	Tag    string          `json:"tag,omitempty" jsonschema:"only domains with this tag"`
	Policy publishedPolicy `json:"policy,omitempty" jsonschema:"only domains with this published policy"`
	Stage  stage           `json:"stage,omitempty" jsonschema:"only domains in this stage"`
	paged
}

func (s *Server) listDomains(ctx context.Context, team *service.Team, in domainsInput) (result answer, err error) {
	filter := service.PostureFilter{Search: in.Search, Policy: string(in.Policy), Stage: string(in.Stage), Limit: in.limit() + 1}
	if in.After != "" {
		key, name, err := wire.ParsePosition(in.After)
		if _, invalid := dmarcd.ParseName(name); err != nil || invalid != nil {
			return result, wire.ErrAfter
		}
		filter.After = &service.PosturePosition{Key: key, Name: name}
	}
	if in.Tag != "" {
		tag, err := dmarcd.ParseTag(in.Tag)
		if err != nil {
			return result, err
		}
		team = team.Tagged(tag)
	}
	list, err := team.Postures(ctx, filter)
	if err != nil {
		return result, err
	}
	return page(list, in.limit(), func(row service.PostureRow) string { return wire.FormatPosition(row.Position.Key, row.Name) },
		func(row service.PostureRow) wire.DomainPosture {
			return wire.NewDomainPosture(row.Domain, row.Posture, row.Tags, s.options.ReportDomain)
		})
}

// latestCheck returns the latest check of a domain.
func latestCheck(ctx context.Context, team *service.Team, name string) (check facts.StoredCheck, err error) {
	domain, err := team.Domain(ctx, name)
	if err != nil {
		return check, err
	}
	check, err = team.LatestCheck(ctx, domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		err = &dmarcd.InvalidError{Field: "domain", Message: "The domain has not been checked yet. Try again in a few seconds."}
	}
	return check, err
}

func getCheck(ctx context.Context, team *service.Team, in named) (result answer, err error) {
	check, err := latestCheck(ctx, team, in.Domain)
	if err != nil {
		return result, err
	}
	return bounded(wire.NewStoredCheck(check)), nil
}

func listFindings(ctx context.Context, team *service.Team, in named) (result answer, err error) {
	check, err := latestCheck(ctx, team, in.Domain)
	if err != nil {
		return result, err
	}
	shape := wire.NewStoredCheck(check)
	return bounded(map[string]any{
		"domain": shape.Domain, "checked_at": shape.CheckedAt, "grade": shape.Grade, "items": shape.Findings, "next_step": shape.NextStep,
	}), nil
}

func listChanges(ctx context.Context, team *service.Team, in filtered) (result answer, err error) {
	name, days, after, err := in.read(ctx, team)
	if err != nil {
		return result, err
	}
	changes, err := team.DomainChanges(ctx, service.ChangeFilter{Domain: name, Times: service.TimesOf(days)}, after, in.limit()+1)
	if err != nil {
		return result, err
	}
	return page(changes, in.limit(), func(c facts.DomainChange) string { return wire.FormatCursor(c.At, int64(c.ID)) }, wire.NewDomainChange)
}

type sendersInput struct {
	anyDomain
	period
	By insight.Group `json:"by,omitempty" jsonschema:"what to list instead of senders"`
	paged
}

func listSenders(ctx context.Context, team *service.Team, in sendersInput) (result answer, err error) {
	name, err := in.name(ctx, team)
	days, wrong := in.days()
	if err := cmp.Or(err, wrong); err != nil {
		return result, err
	}
	mail, err := team.Mail(ctx, name, days)
	if err != nil {
		return result, err
	}
	defer mail.Close()
	return fittingAnswer(in.limit(), func(limit int) (list wire.Page[wire.Sender], err error) {
		found, err := mail.List(ctx, insight.Query{Group: cmp.Or(in.By, insight.GroupSender), After: in.After, Limit: limit, Assess: true})
		if err != nil {
			return list, err
		}
		list.Items = []wire.Sender{}
		for _, row := range found.Rows {
			item := wire.NewSender(row.Key, row.Name, row.Detail, row.Counts, row.First, row.Last, row.Seen)
			if a := row.Assessment; a != nil {
				item.Assess(a.Class, a.Evidence, a.Cause, a.Fix)
			}
			list.Items = append(list.Items, item)
		}
		if found.Next != "" {
			list.Next = &found.Next
		}
		return list, nil
	})
}

func getAdvice(ctx context.Context, team *service.Team, in named) (result answer, err error) {
	advice, err := team.Advice(ctx, in.Domain)
	if err != nil {
		return result, err
	}
	return bounded(wire.NewAdvice(advice)), nil
}

type policyInput struct {
	named
	period
	P  policy `json:"p" jsonschema:"the policy of the domain"`
	SP policy `json:"sp,omitempty" jsonschema:"the policy of its subdomains; as published if absent"`
	NP policy `json:"np,omitempty" jsonschema:"the policy of subdomains that do not exist; as published if absent"`
}

func simulatePolicy(ctx context.Context, team *service.Team, in policyInput) (result answer, err error) {
	days, err := in.days()
	if err != nil {
		return result, err
	}
	s, err := team.Simulate(ctx, in.Domain, days, service.PolicyChange{P: in.P.parsed(), SP: in.SP.parsed(), NP: in.NP.parsed()})
	if err != nil {
		return result, err
	}
	shape := wire.NewSimulation(s.Result())
	shape.Senders = shape.Senders[:min(len(shape.Senders), defaultPage)]
	return bounded(shape), nil
}

type summaryInput struct {
	anyDomain
	period
}

func summarizeReports(ctx context.Context, team *service.Team, in summaryInput) (result answer, err error) {
	days, err := in.days()
	if err != nil {
		return result, err
	}
	var sum dmarcd.Summary
	if in.Domain == "" {
		sum, err = team.Summary(ctx, days)
	} else {
		sum, err = team.DomainSummary(ctx, in.Domain, days)
	}
	if err != nil {
		return result, err
	}
	return bounded(wire.NewSummary(sum)), nil
}

type reportsInput struct {
	filtered
	Kind         dmarcd.ReportKind `json:"kind,omitempty" jsonschema:"only reports of this kind"`
	Organization string            `json:"organization,omitempty" jsonschema:"only reports of this reporter"`
}

func listReports(ctx context.Context, team *service.Team, in reportsInput) (result answer, err error) {
	name, days, after, err := in.read(ctx, team)
	if err != nil {
		return result, err
	}
	filter := service.ReportFilter{Domain: name, Days: days, Kind: in.Kind, Organization: in.Organization}
	reports, err := team.Reports(ctx, filter, dmarcd.ReportID(after.ID), in.limit()+1)
	if err != nil {
		return result, err
	}
	return page(reports, in.limit(), func(r dmarcd.Report) string { return wire.FormatCursor(r.ReceivedAt, int64(r.ID)) }, wire.NewStoredReport)
}

type reportInput struct {
	ID string `json:"id" jsonschema:"the id of the report, as list_reports has it"`
	paged
}

func getReport(ctx context.Context, team *service.Team, in reportInput) (result answer, err error) {
	id, err := dmarcd.ParseReportID(in.ID)
	if err != nil {
		return result, dmarcd.ErrNotFound
	}
	var after service.RecordCursor
	if in.After != "" {
		after.Begun = true
		if after.Share, after.N, err = wire.ParseRecordCursor(in.After); err != nil {
			return result, err
		}
	}
	ctx, release, err := team.ReserveReport(ctx, id)
	if err != nil {
		return result, err
	}
	defer release() // after the answer is bounded, which takes the most memory
	report, err := team.Report(ctx, id)
	if err != nil {
		return result, err
	}
	cut := false
	full, err := fitting(in.limit(), func(limit int) (full wire.FullReport, err error) {
		records, more, err := team.Records(ctx, id, after, limit)
		if err != nil {
			return full, err
		}
		list := wire.Page[wire.StoredRecord]{Items: []wire.StoredRecord{}}
		for _, r := range records {
			list.Items = append(list.Items, wire.NewStoredRecord(r.Domain, wire.NewAggregateRecord(r.Record)))
		}
		if more {
			last := records[len(records)-1].Cursor
			list.Next = new(wire.FormatRecordCursor(last.Share, last.N))
		}
		full = wire.NewFullReport(report, list)
		if tls, ok := full.Report.(wire.TLSReport); ok {
			cut = cutTLS(&tls)
			full.Report = tls
		}
		return full, nil
	})
	if err != nil {
		return result, err
	}
	short := bounded(full)
	short.Cut = short.Cut || cut
	return short, nil
}

// space counts down the bytes that an answer has space for. cut means that there were more.
type space struct {
	left int
	cut  bool
}

func (s *space) take(texts ...wire.Text) {
	for _, text := range texts {
		s.left -= len(text) + len(`"":"",`)
	}
}

// firsts returns the first items, as long as there is space.
func firsts[T any](s *space, items []T, take func(item *T)) []T {
	for i := range items {
		if s.left <= 0 {
			s.cut = true
			return items[:i]
		}
		take(&items[i])
	}
	return items
}

// cutTLS removes policies and failures of a TLS report that no answer has space for: it may have
// 100,000 failures, and bounded copies all that it gets. It reports whether there were any.
func cutTLS(r *wire.TLSReport) (cut bool) {
	s := &space{left: 2 * maxAnswer}
	text := func(text *string) { s.take(wire.Text(*text)) }
	r.Policies = firsts(s, r.Policies, func(p *wire.TLSPolicy) {
		s.take(p.Type, p.Domain)
		p.Strings, p.MXHosts, p.ResultTypes = firsts(s, p.Strings, text), firsts(s, p.MXHosts, text), firsts(s, p.ResultTypes, text)
		p.DetailList = firsts(s, p.DetailList, func(f *wire.TLSFailure) {
			s.take(f.ResultType, f.SendingMTAIP, f.ReceivingMXHostname, f.ReceivingMXHelo, f.ReceivingIP, f.AdditionalInformation, f.ReasonCode)
		})
	})
	return s.cut
}

type eventsInput struct {
	filtered
	Kind dmarcd.EventKind `json:"kind,omitempty" jsonschema:"only events of this kind"`
}

func (s *Server) listEvents(ctx context.Context, team *service.Team, in eventsInput) (result answer, err error) {
	name, days, after, err := in.read(ctx, team)
	if err != nil {
		return result, err
	}
	filter := service.EventFilter{Domain: name, Times: service.TimesOf(days)}
	if in.Kind != "" {
		filter.Kinds = []dmarcd.EventKind{in.Kind}
	}
	events, err := team.Events(ctx, filter, after, in.limit()+1)
	if err != nil {
		return result, err
	}
	return page(events, in.limit(), func(e dmarcd.Event) string { return wire.FormatCursor(e.At, e.Seq) },
		func(e dmarcd.Event) wire.Event { return wire.NewEvent(e, s.options.BaseURL) })
}

type alertsInput struct {
	filtered
	Open bool `json:"open,omitempty" jsonschema:"only alerts that are not acknowledged and need someone"`
}

func (s *Server) listAlerts(ctx context.Context, team *service.Team, in alertsInput) (result answer, err error) {
	name, days, after, err := in.read(ctx, team)
	if err != nil {
		return result, err
	}
	alerts, err := team.Alerts(ctx, dmarcd.AlertFilter{Domain: name, Days: days, Open: in.Open}, after.ID, in.limit()+1)
	if err != nil {
		return result, err
	}
	return page(alerts, in.limit(), func(a dmarcd.Alert) string { return wire.FormatCursor(a.Event.At, a.Event.Seq) },
		func(a dmarcd.Alert) wire.Alert { return wire.NewAlert(a, s.options.BaseURL) })
}
