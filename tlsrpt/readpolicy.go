package tlsrpt

import "errors"

// addPolicy reads one entry of the policies. It counts once it is complete.
func (r *reportReader) addPolicy(tok token) error {
	if tok != '{' {
		return r.unusable(tok)
	}
	if r.policies++; r.policies > r.limits.Policies {
		return refuse(RefusedLimit, "the report has too many policies")
	}
	b := policyBuilder{reportReader: r}
	seen, err := r.object(tok, entryMembers, b.setEntry)
	if err != nil {
		r.quirks.noteIf(errors.Is(err, errTruncated) || errors.Is(err, errMalformed), PolicyIncomplete)
		return err
	}
	b.check(seen)
	r.report.Policies = append(r.report.Policies, b.policy)
	return nil
}

// policyBuilder builds one policy of a report.
type policyBuilder struct {
	*reportReader

	policy  Policy
	summary members
}

// setEntry takes a member of an entry of the policies.
func (b *policyBuilder) setEntry(member string, tok token) (err error) {
	p := &b.policy
	switch member {
	case memberPolicy:
		p.Type, p.Domain, p.Strings, p.MXHosts = "", "", nil, nil
		_, err = b.object(tok, policyMembers, b.setPolicy)
	case memberSummary:
		p.Successful, p.Failed = 0, 0
		b.summary, err = b.object(tok, summaryMembers, b.setSummary)
	case memberFailures:
		p.Failures = nil
		err = b.list(tok, SingleValue, b.addFailure)
	}
	return err
}

// setPolicy takes a member of the policy itself.
func (b *policyBuilder) setPolicy(member string, tok token) (err error) {
	p := &b.policy
	switch member {
	case memberType:
		p.Type, err = word(&b.document, tok, policyTypes)
	case memberDomain:
		p.Domain, err = b.domain(tok)
	case memberStrings:
		p.Strings, err = b.textList(tok, SingleValue, func(text string) string { return text })
	case memberMXHost:
		p.MXHosts, err = b.textList(tok, MXHostText, b.mxHost)
	}
	return err
}

// setSummary takes a member of the summary.
func (b *policyBuilder) setSummary(member string, tok token) (err error) {
	switch member {
	case memberSuccessful:
		b.policy.Successful, err = b.count(tok)
	case memberFailed:
		b.policy.Failed, err = b.count(tok)
	}
	return err
}

// addFailure reads one entry of the failure details.
func (b *policyBuilder) addFailure(tok token) error {
	if tok != '{' {
		return b.unusable(tok)
	}
	if b.failures++; b.failures > b.limits.Failures {
		return refuse(RefusedLimit, "the report has too many failure details")
	}
	var f Failure
	seen, err := b.object(tok, failureMembers, func(member string, tok token) error {
		return b.setFailure(&f, member, tok)
	})
	if err != nil {
		return err
	}
	b.quirks.noteIf(f.ResultType == "", ResultTypeMissing)
	b.quirks.noteIf(!seen.has(failureMembers, memberFailedSessions), CountMissing)
	b.quirks.noteIf(f.SendingMTAIP == "" && f.ReceivingIP == "" && f.ReceivingMXHostname == "" && f.ReceivingMXHelo == "", PeerMissing)
	b.policy.Failures = append(b.policy.Failures, f)
	return nil
}

// setFailure takes a member of a failure detail.
func (b *policyBuilder) setFailure(f *Failure, member string, tok token) (err error) {
	switch member {
	case memberResult:
		f.ResultType, err = word(&b.document, tok, resultTypes)
	case memberSendingIP:
		f.SendingMTAIP, err = b.address(tok)
	case memberReceivingHost:
		f.ReceivingMXHostname, err = b.domain(tok)
	case memberReceivingHelo:
		f.ReceivingMXHelo, err = b.text(tok)
	case memberReceivingIP:
		f.ReceivingIP, err = b.address(tok)
	case memberFailedSessions:
		f.FailedSessions, err = b.count(tok)
	case memberInformation:
		f.AdditionalInformation, err = b.text(tok)
	case memberReason:
		f.ReasonCode, err = b.text(tok)
	}
	return err
}

// check notes what is missing or odd in the policy.
func (b *policyBuilder) check(entry members) {
	q, p := b.quirks, &b.policy
	if entry.has(entryMembers, memberPolicy) {
		q.noteIf(p.Type == "", PolicyTypeMissing)
		q.noteIf(p.Domain == "", PolicyDomainMissing)
		q.noteIf(p.Type == PolicySTS && len(p.MXHosts) == 0, MXHostMissing)
	} else {
		q.note(PolicyMissing)
	}
	if entry.has(entryMembers, memberSummary) {
		q.noteIf(!b.summary.has(summaryMembers, memberSuccessful), CountMissing)
		q.noteIf(!b.summary.has(summaryMembers, memberFailed), CountMissing)
	} else {
		q.note(SummaryMissing)
	}
	var detailed int64
	for i := range p.Failures {
		detailed = addCount(detailed, p.Failures[i].FailedSessions)
	}
	q.noteIf(p.Failed > 0 && len(p.Failures) == 0, DetailsMissing)
	q.noteIf(detailed > p.Failed, DetailsExceed)
}
