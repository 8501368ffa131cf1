package tlsrpt

import (
	"slices"
	"strings"
)

// The members of RFC 8460 §4.4.
const (
	memberOrganization = "organization-name"
	memberRange        = "date-range"
	memberContact      = "contact-info"
	memberReportID     = "report-id"
	memberPolicies     = "policies"

	memberStart = "start-datetime"
	memberEnd   = "end-datetime"

	memberPolicy   = "policy"
	memberSummary  = "summary"
	memberFailures = "failure-details"

	memberType    = "policy-type"
	memberStrings = "policy-string"
	memberDomain  = "policy-domain"
	memberMXHost  = "mx-host"

	memberSuccessful = "total-successful-session-count"
	memberFailed     = "total-failure-session-count"

	memberResult         = "result-type"
	memberSendingIP      = "sending-mta-ip"
	memberReceivingHost  = "receiving-mx-hostname"
	memberReceivingHelo  = "receiving-mx-helo"
	memberReceivingIP    = "receiving-ip"
	memberFailedSessions = "failed-session-count"
	memberInformation    = "additional-information"
	memberReason         = "failure-reason-code"
)

// The members of each kind of object.
var (
	reportMembers  = []string{memberOrganization, memberRange, memberContact, memberReportID, memberPolicies}
	rangeMembers   = []string{memberStart, memberEnd}
	entryMembers   = []string{memberPolicy, memberSummary, memberFailures}
	policyMembers  = []string{memberType, memberStrings, memberDomain, memberMXHost}
	summaryMembers = []string{memberSuccessful, memberFailed}
	failureMembers = []string{
		memberResult, memberSendingIP, memberReceivingHost, memberReceivingHelo, memberReceivingIP,
		memberFailedSessions, memberInformation, memberReason,
	}
)

// memberAliases are names of drafts before RFC 8460, in plain form.
var memberAliases = map[string]string{"failureerrorcode": memberReason}

// plainMembers holds all members in plain form.
var plainMembers = func() map[string]string {
	all := make(map[string]string)
	for _, table := range [][]string{reportMembers, rangeMembers, entryMembers, policyMembers, summaryMembers, failureMembers} {
		for _, member := range table {
			all[plainName(member)] = member
		}
	}
	return all
}()

// findMember returns the index of the member that a name stands for, or -1.
func (t *tally) findMember(name string, members []string) int {
	if i := slices.Index(members, name); i >= 0 {
		return i
	}
	plain := plainName(name)
	if member, ok := plainMembers[plain]; ok {
		if i := slices.Index(members, member); i >= 0 {
			t.note(MemberForm)
			return i
		}
	}
	if alias, ok := memberAliases[plain]; ok {
		if i := slices.Index(members, alias); i >= 0 {
			t.note(MemberAlias)
			return i
		}
	}
	t.note(MemberUnknown)
	return -1
}

// plainName returns a name without what tells kebab-case, snake_case and CamelCase
// apart.
func plainName(name string) string {
	return strings.ToLower(separators.Replace(name))
}

var separators = strings.NewReplacer("-", "", "_", "", " ", "")
