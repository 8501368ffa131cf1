package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/publish"
	"github.com/dmarcd/dmarcd/internal/store"
)

// Publisher publishes records at DNS servers of others. An error is a *publish.Error, or a
// *dmarcd.InvalidError about the key.
type Publisher interface {
	Try(ctx context.Context, t publish.Target, name string) error
	Publish(ctx context.Context, t publish.Target, c publish.Change) error
	Published(ctx context.Context, t publish.Target, c publish.Change) (bool, error)
}

const (
	// attemptTime is longer than a publication takes. After it, what is there decides.
	attemptTime = time.Minute
	// attemptAge is how long a publication is looked for at a server that does not answer.
	attemptAge = 24 * time.Hour
	// attemptsAtOnce limits those of one step of FinishRecords.
	attemptsAtOnce = 20
)

// RecordTarget returns the server to which the records of a domain are published, without its key, or
// dmarcd.ErrNotFound.
func (t *Team) RecordTarget(ctx context.Context, name string) (dmarcd.PublishTarget, error) {
	domain, err := t.named(ctx, dmarcd.RightSee, name)
	if err != nil {
		return dmarcd.PublishTarget{}, err
	}
	target, err := t.team.RecordTarget(ctx, domain.Name)
	target.Secret = nil
	return target, err
}

// SetRecordTarget has the records of a domain published at a server with a key, after it has shown that
// the key may do so. It applies to records that are not managed yet. A failure is a
// *dmarcd.InvalidError; attempts are throttled, and failures are in the audit log.
func (t *Team) SetRecordTarget(ctx context.Context, name string, target dmarcd.PublishTarget, key string) (dmarcd.PublishTarget, error) {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return dmarcd.PublishTarget{}, err
	}
	if target, err = dmarcd.TargetFor(domain.Name, target); err != nil {
		return dmarcd.PublishTarget{}, err
	}
	switch {
	case domain.Sample:
		return dmarcd.PublishTarget{}, &dmarcd.InvalidError{Message: "A sample domain has no records of its own."}
	case strings.TrimSpace(key) == "" || len(key) > dmarcd.MaxTargetKey:
		return dmarcd.PublishTarget{}, &dmarcd.InvalidError{Field: "key", Message: "Give the key of the server: a TSIG key, or that of the API of PowerDNS."}
	}
	if err := t.tryTarget(ctx, domain.Name, target, key); err != nil {
		return dmarcd.PublishTarget{}, err
	}
	seal := func(target dmarcd.PublishTarget) ([]byte, error) {
		return t.service.options.Secrets.Seal([]byte(key), target.SecretContext(t.team.ID()))
	}
	return t.team.SetRecordTarget(ctx, domain.Name, target, seal, t.actor.to("target.set", domain.Name, string(target.Kind)+" at "+target.Server))
}

// tryTarget tries a target, throttled like logins to mailboxes: it must be no port scanner, and no way
// to guess keys.
func (t *Team) tryTarget(ctx context.Context, domain string, target dmarcd.PublishTarget, key string) error {
	team, attempts := t.team.ID(), t.service.mailboxAttempts
	if err := attempts.Attempt(team.String(), t.actor.entry.Actor); err != nil {
		return &dmarcd.InvalidError{Field: "server", Message: err.Error()}
	}
	err := t.service.options.Publisher.Try(ctx, publish.Target{PublishTarget: target, Key: key}, dmarcd.RecordDMARC.Owner(domain))
	if err == nil {
		attempts.Succeeded(team.String(), t.actor.entry.Actor)
		return nil
	}
	failed := &publish.Error{}
	if !errors.As(err, &failed) {
		return err
	}
	log, detail := t.service.options.Log, failed.Message
	if t.actor.local && failed.Reason != nil {
		detail = failed.Reason.Error()
	}
	log.WarnContext(ctx, "target of records not added", "stage", failed.Stage, "error", failed.Reason, "team", team)
	entry := t.actor.to("target.failed", domain, string(target.Kind)+" at "+target.Server+": "+detail)
	// A client must not avoid the entry by disconnecting.
	if err := t.service.store.Team(team).Note(context.WithoutCancel(ctx), entry); err != nil {
		log.ErrorContext(ctx, "audit entry not written", "error", err, "team", team)
	}
	return &dmarcd.InvalidError{Field: targetFields[failed.Stage], Message: failed.Message}
}

// targetFields are the fields of a target that a stage is about.
var targetFields = map[publish.Stage]string{
	publish.StageConnection: "server", publish.StageAnswer: "server", publish.StageKey: "key", publish.StagePolicy: "key", publish.StageZone: "zone",
}

// RemoveRecordTarget removes the server to which the records of a domain are published. What is
// published there stays.
func (t *Team) RemoveRecordTarget(ctx context.Context, name string) error {
	domain, err := t.mayPublish(ctx, name)
	if err != nil {
		return err
	}
	return t.team.RemoveRecordTarget(ctx, domain.Name, t.actor.to("target.remove", domain.Name, ""))
}

// elsewhere reports whether the version after before is published at the target of a domain: each record that
// began there, and one that begins while there is a target. The host of an MTA-STS policy needs a CNAME record
// to a name in the zone, which has the TXT record, too.
func (t *Team) elsewhere(ctx context.Context, domain string, kind dmarcd.RecordKind, before dmarcd.RecordVersion) (bool, error) {
	if kind == dmarcd.RecordMTASTS || before.Version != 0 {
		return kind != dmarcd.RecordMTASTS && before.Label == "", nil
	}
	_, err := t.team.RecordTarget(ctx, domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// publishElsewhere publishes a version that was checked at the target of a domain. It is stored as begun,
// published at the server and read back, and is the last version only then. After a crash in between,
// settle reads what the server has.
func (t *Team) publishElsewhere(ctx context.Context, p prepared, entry dmarcd.AuditEntry) (ManagedRecord, error) {
	domain, base, v := p.domain.Name, p.before.Version, p.RecordVersion
	if err := t.service.settle(ctx, t.team, domain, v.Kind); err != nil {
		return ManagedRecord{}, err
	}
	v, err := t.team.BeginRecord(ctx, domain, base, v)
	if err != nil {
		return ManagedRecord{}, err
	}
	err = t.service.publishAt(ctx, t.team, domain, v, p.before.Content)
	log := t.service.options.Log.With("team", t.team.ID(), "domain", domain)
	ctx = context.WithoutCancel(ctx) // the server has answered: the client may be gone
	failed := &publish.Error{}
	switch {
	case err == nil:
		v, err = t.team.PublishRecord(ctx, domain, base, v, nil, entry)
		record := managedRecord(v, domain, "")
		record.State = dmarcd.RecordManaged // it was read back
		return record, err
	case errors.As(err, &failed) && failed.Uncertain:
		log.WarnContext(ctx, "record perhaps not published", "stage", failed.Stage, "error", failed.Reason)
		return ManagedRecord{}, &dmarcd.InvalidError{Message: failed.Message + " Whether it has the record is checked again every minute."}
	case failed.Message != "":
		log.WarnContext(ctx, "record not published", "stage", failed.Stage, "error", failed.Reason)
		err = &dmarcd.InvalidError{Message: failed.Message}
	}
	if ended := t.team.EndAttempt(ctx, domain, v); ended != nil {
		log.WarnContext(ctx, "attempt not ended", "error", ended) // settle does
	}
	return ManagedRecord{}, err
}

// change returns what to publish for a version, and where.
func (s *Service) change(ctx context.Context, team *store.Team, domain string, v dmarcd.RecordVersion) (publish.Target, publish.Change, error) {
	c := publish.Change{Domain: domain, Name: v.Kind.Owner(domain), Text: v.Content, Ours: func(text string) bool { return isRecord(v.Kind, text) }}
	target, err := team.RecordTarget(ctx, domain)
	if errors.Is(err, dmarcd.ErrNotFound) {
		return publish.Target{}, c, &dmarcd.InvalidError{Message: "The DNS server for the records of this domain was removed. Add it again, or stop managing the record."}
	}
	if err != nil {
		return publish.Target{}, c, err
	}
	key, err := s.options.Secrets.Open(target.Secret, target.SecretContext(team.ID()))
	return publish.Target{PublishTarget: target, Key: string(key)}, c, err
}

// publishAt publishes a version instead of what was replaced.
func (s *Service) publishAt(ctx context.Context, team *store.Team, domain string, v dmarcd.RecordVersion, replaced string) error {
	target, c, err := s.change(ctx, team, domain, v)
	if err != nil {
		return err
	}
	c.Base = replaced
	return s.options.Publisher.Publish(ctx, target, c)
}

// settle ends a publication whose process ended before it knew what became of it: with the version
// published, if the server has it. One that may still go on is dmarcd.ErrConflict.
func (s *Service) settle(ctx context.Context, team *store.Team, domain string, kind dmarcd.RecordKind) error {
	begun, err := team.BegunRecord(ctx, domain, kind)
	if err != nil {
		if errors.Is(err, dmarcd.ErrNotFound) {
			return nil
		}
		return err
	}
	if s.options.Now().Sub(begun.CreatedAt) < attemptTime {
		return fmt.Errorf("%w: another change of this record is being published, try again in a minute", dmarcd.ErrConflict)
	}
	target, c, err := s.change(ctx, team, domain, begun)
	if err != nil {
		return err
	}
	there, err := s.options.Publisher.Published(ctx, target, c)
	failed := &publish.Error{}
	switch {
	case errors.As(err, &failed):
		return &dmarcd.InvalidError{Message: "It is not known whether the previous change was published: " + failed.Message}
	case err != nil:
		return err
	case there:
		entry := dmarcd.AuditEntry{Actor: begun.Author, Action: "record.publish", Target: domain, Detail: string(kind)}
		if begun.Approver != "" {
			entry.Actor, entry.Action = begun.Approver, "record.approve"
		}
		_, err = team.PublishRecord(ctx, domain, begun.Version-1, begun, nil, entry)
	default:
		err = team.EndAttempt(ctx, domain, begun)
	}
	if errors.Is(err, dmarcd.ErrNotFound) || errors.Is(err, dmarcd.ErrConflict) {
		return nil // another process ended it
	}
	return err
}

// FinishRecords settles publications whose process ended. Servers that do not answer are tried for a
// day.
func (s *Service) FinishRecords(ctx context.Context) (more bool, err error) {
	begun, err := s.store.BegunRecords(ctx, attemptTime, attemptAge, attemptsAtOnce)
	for _, b := range begun {
		settled := s.settle(ctx, s.store.Team(b.Team), b.Domain, b.Kind)
		if settled != nil && !errors.Is(settled, dmarcd.ErrInvalid) {
			err = errors.Join(err, settled)
		}
	}
	return false, err
}

// recordTags are the first tags of the records of each kind.
var recordTags = map[dmarcd.RecordKind]string{
	dmarcd.RecordDMARC: "v=DMARC1", dmarcd.RecordTLSRPT: "v=TLSRPTv1", dmarcd.RecordBIMI: "v=BIMI1", dmarcd.RecordMTASTS: "v=STSv1", dmarcd.RecordSPF: "v=spf1",
}

// isRecord reports whether a text is meant to be a record of a kind.
func isRecord(kind dmarcd.RecordKind, text string) bool {
	tag := recordTags[kind]
	compact := strings.ReplaceAll(text, " ", "")
	if kind == dmarcd.RecordSPF {
		compact = text // its terms are divided by spaces
	}
	if len(compact) < len(tag) || !strings.EqualFold(compact[:len(tag)], tag) {
		return false
	}
	rest := compact[len(tag):]
	return rest == "" || rest[0] == ';' || rest[0] == ' '
}

// elsewhereState looks up a record that is published at a target.
func (t *Team) elsewhereState(ctx context.Context, r ManagedRecord) dmarcd.RecordState {
	answer := t.service.options.DNS.Resolve(ctx, dns.Question{Name: r.Owner, Type: dns.TXT})
	if answer.Outcome == dns.Inconclusive {
		return dmarcd.RecordUnknown
	}
	state := dmarcd.RecordNotYet
	for _, text := range answer.Texts() {
		switch {
		case text == r.Content:
			return dmarcd.RecordManaged
		case isRecord(r.Kind, text):
			state = dmarcd.RecordElsewhere
		}
	}
	return state
}
