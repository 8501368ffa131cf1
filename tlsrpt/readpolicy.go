package tlsrpt

// entry is an entry of the policies.
type entry struct {
	Policy

	counts members // of the summary
}

// policies reads the policies, which replace earlier ones. A policy counts once it is
// complete.
func (r *reportReader) policies(report *Report, tok token) error {
	report.Policies = nil
	return r.list(tok, SingleValue, func(tok token) error {
		if tok != '{' {
			return r.unusable(tok)
		}
		if r.policyCount++; r.policyCount > r.limits.Policies {
			return reject(RejectedLimit, "the report has too many policies")
		}
		var e entry
		seen, err := object(r, tok, &e, entryMembers)
		if err != nil {
			r.quirks.NoteIf(isDamage(err), PolicyIncomplete)
			return err
		}
		e.check(seen, r.quirks)
		report.Policies = append(report.Policies, e.Policy)
		return nil
	})
}

func (r *reportReader) policy(e *entry, tok token) error {
	e.Type, e.Domain, e.Strings, e.MXHosts = "", "", nil, nil
	_, err := object(r, tok, e, policyMembers)
	return err
}

func (r *reportReader) summary(e *entry, tok token) (err error) {
	e.Successful, e.Failed = 0, 0
	e.counts, err = object(r, tok, e, summaryMembers)
	return err
}

// failures reads the failure details, which replace earlier ones.
func (r *reportReader) failures(e *entry, tok token) error {
	e.Failures = nil
	return r.list(tok, SingleValue, func(tok token) error {
		if tok != '{' {
			return r.unusable(tok)
		}
		if r.detailCount++; r.detailCount > r.limits.Failures {
			return reject(RejectedLimit, "the report has too many failure details")
		}
		var f Failure
		seen, err := object(r, tok, &f, failureMembers)
		if err != nil {
			return err
		}
		r.quirks.NoteIf(f.ResultType == "", ResultTypeMissing)
		r.quirks.NoteIf(!has(seen, failureMembers, memberFailedSessions), CountMissing)
		r.quirks.NoteIf(f.SendingMTAIP == "" && f.ReceivingIP == "" && f.ReceivingMXHostname == "" && f.ReceivingMXHelo == "", PeerMissing)
		e.Failures = append(e.Failures, f)
		return nil
	})
}

func (d *document) policyType(tok token) (PolicyType, error) { return word(d, tok, policyTypes) }

func (d *document) resultType(tok token) (ResultType, error) { return word(d, tok, resultTypes) }

func (d *document) policyStrings(tok token) ([]string, error) {
	return d.textList(tok, SingleValue, func(text string) string { return text })
}

func (d *document) mxHosts(tok token) ([]string, error) {
	return d.textList(tok, MXHostText, d.mxHost)
}

// check notes deviations of the policy. seen are the members of the entry.
func (e *entry) check(seen members, q *tally) {
	if has(seen, entryMembers, memberPolicy) {
		q.NoteIf(e.Type == "", PolicyTypeMissing)
		q.NoteIf(e.Domain == "", PolicyDomainMissing)
		q.NoteIf(e.Type == PolicySTS && len(e.MXHosts) == 0, MXHostMissing)
	} else {
		q.Note(PolicyMissing)
	}
	if has(seen, entryMembers, memberSummary) {
		q.NoteIf(!has(e.counts, summaryMembers, memberSuccessful), CountMissing)
		q.NoteIf(!has(e.counts, summaryMembers, memberFailed), CountMissing)
	} else {
		q.Note(SummaryMissing)
	}
	var detailed int64
	for i := range e.Failures {
		detailed = addCount(detailed, e.Failures[i].FailedSessions)
	}
	q.NoteIf(e.Failed > 0 && len(e.Failures) == 0, DetailsMissing)
	q.NoteIf(detailed > e.Failed, DetailsExceed)
}
