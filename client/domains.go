package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dmarcd/dmarcd/internal/wire"
)

// GetMe returns the team of the token, its scopes and quotas, and the version of the server.
func (c *Client) GetMe(ctx context.Context) (Me, error) { return get[Me](ctx, c, "me") }

// domainsPage is the number of domains that are read at once.
const domainsPage = 1000

// ListDomains lists the domains with a tag, "" for all, by name.
func (c *Client) ListDomains(ctx context.Context, tag string) iter.Seq2[Domain, error] {
	return func(yield func(Domain, error) bool) {
		query := url.Values{"limit": {strconv.Itoa(domainsPage)}}
		if tag != "" {
			query.Set("tag", tag)
		}
		for {
			var part []Domain
			header, err := c.decode(ctx, call{method: http.MethodGet, path: []string{"domains"}, query: query}, &part)
			if err != nil {
				yield(Domain{}, err)
				return
			}
			for _, domain := range part {
				if !yield(domain, nil) {
					return
				}
			}
			if header.Get("Link") == "" || len(part) == 0 {
				return
			}
			query.Set("after", part[len(part)-1].Domain)
		}
	}
}

// AddDomain adds a domain. Its DNS is checked right away: for up to two seconds before the answer, then
// in the background.
func (c *Client) AddDomain(ctx context.Context, domain string) (Domain, error) {
	return post[Domain](ctx, c, map[string]string{"domain": domain}, "domains")
}

// GetDomain returns a domain.
func (c *Client) GetDomain(ctx context.Context, domain string) (Domain, error) {
	return get[Domain](ctx, c, "domains", domain)
}

// DeleteDomain deletes a domain. Its reports stay.
func (c *Client) DeleteDomain(ctx context.Context, domain string) error {
	return c.remove(ctx, "domains", domain)
}

// ChangeDomains adds and deletes up to 10,000 domains, with a result for each.
func (c *Client) ChangeDomains(ctx context.Context, add, remove []string) ([]DomainResult, error) {
	results, err := post[wire.DomainResults](ctx, c, map[string][]string{"add": add, "delete": remove}, "domains", "bulk")
	return results.Items, err
}

// Verified is a domain after a check of its DNS. A check that was not conclusive changed nothing.
type Verified struct {
	Domain

	Conclusive bool `json:"-"`
	// Reason is why DNS did not answer, "" if the check was conclusive.
	Reason string `json:"-"`
}

// VerifyDomain checks the DNS of a domain now.
func (c *Client) VerifyDomain(ctx context.Context, domain string) (verified Verified, err error) {
	header, err := c.decode(ctx, call{method: http.MethodPost, path: []string{"domains", domain, "verify"}}, &verified)
	verified.Conclusive, verified.Reason = header.Get("Dmarcd-Check") == "conclusive", header.Get("Dmarcd-Check-Reason")
	return verified, err
}

// GetSetup returns the records to publish for a domain.
func (c *Client) GetSetup(ctx context.Context, domain string) (Setup, error) {
	return get[Setup](ctx, c, "domains", domain, "setup")
}

// GetSetupFile returns the records to publish for a domain as a file in a format, such as bind, for a
// zone, "" for that of the domain.
func (c *Client) GetSetupFile(ctx context.Context, domain, format, zone string) (string, error) {
	return c.file(ctx, recordFile{Format: format, Zone: zone}, "domains", domain, "setup")
}

// recordFile selects a file of records.
type recordFile struct {
	Domain string `query:"domain"`
	Format string `query:"format"`
	Zone   string `query:"zone"`
}

func (c *Client) file(ctx context.Context, file recordFile, path ...string) (string, error) {
	response, err := c.send(ctx, call{method: http.MethodGet, path: path, filter: file})
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // read to the end
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// SetPurpose declares what a domain is used for: business, personal, education, nonprofit, or "".
func (c *Client) SetPurpose(ctx context.Context, domain, purpose string) (Domain, error) {
	var declared *string
	if purpose != "" {
		declared = &purpose
	}
	return put[Domain](ctx, c, map[string]*string{"domain_usage_purpose": declared}, "domains", domain, "purpose")
}

// SelfTest sends a synthetic report about a domain through the whole path, and deletes it.
func (c *Client) SelfTest(ctx context.Context, domain string) (SelfTest, error) {
	return post[SelfTest](ctx, c, nil, "domains", domain, "selftest")
}

// GetTags returns the tags of a domain.
func (c *Client) GetTags(ctx context.Context, domain string) ([]string, error) {
	tags, err := get[wire.Tags](ctx, c, "domains", domain, "tags")
	return tags.Tags, err
}

// SetTags replaces the tags of a domain.
func (c *Client) SetTags(ctx context.Context, domain string, tags []string) ([]string, error) {
	result, err := put[wire.Tags](ctx, c, wire.NewTags(tags), "domains", domain, "tags")
	return result.Tags, err
}

// ListManagedRecords lists the managed records of a domain, and whether their CNAME records are there.
func (c *Client) ListManagedRecords(ctx context.Context, domain string) iter.Seq2[ManagedRecord, error] {
	return list[ManagedRecord](ctx, c, nil, "domains", domain, "records")
}

// ListRecordVersions lists the versions of a managed record, dmarc, spf, mta_sts, tls_rpt or bimi, the latest first.
func (c *Client) ListRecordVersions(ctx context.Context, domain, kind string) iter.Seq2[RecordVersion, error] {
	return list[RecordVersion](ctx, c, nil, "domains", domain, "records", kind, "versions")
}

// RecordChange is a version of a managed record to publish.
type RecordChange struct {
	// Base is the version that it replaces, 0 for a record that is not managed yet.
	Base int64 `json:"base"`
	// Record is the text of the TXT record. Nil begins with the one that is published now.
	Record *string `json:"record"`
	Reason *string `json:"reason"` // for the history; nil for none
}

// PublishRecord publishes a version of a managed record. It needs a token with the scope publish. If the
// team requires approval, the version is proposed, and the Version of the result is 0.
func (c *Client) PublishRecord(ctx context.Context, domain, kind string, change RecordChange) (ManagedRecord, error) {
	return put[ManagedRecord](ctx, c, change, "domains", domain, "records", kind)
}

// StopRecord stops managing a record: its name in the zone answers for 90 more days.
func (c *Client) StopRecord(ctx context.Context, domain, kind string) error {
	return c.remove(ctx, "domains", domain, "records", kind)
}

// ListRecordProposals lists the versions of managed records that wait for approval.
func (c *Client) ListRecordProposals(ctx context.Context, domain string) iter.Seq2[RecordProposal, error] {
	return list[RecordProposal](ctx, c, nil, "domains", domain, "proposals")
}

// GetRecordTarget returns the DNS server at which the records of a domain are published.
func (c *Client) GetRecordTarget(ctx context.Context, domain string) (RecordTarget, error) {
	return get[RecordTarget](ctx, c, "domains", domain, "target")
}

// NewRecordTarget is a DNS server at which the records of a domain are published.
type NewRecordTarget struct {
	Kind   string `json:"kind"`   // rfc2136 or powerdns
	Server string `json:"server"` // host[:port], or the URL of the API of PowerDNS
	// Zone is the zone at the server. Nil is that of the domain.
	Zone *string `json:"zone"`
	Key  string  `json:"key"` // [algorithm:]name:secret of TSIG, or the key of the API
}

// SetRecordTarget tries a DNS server, and has the records of a domain published there. It needs a token
// with the scope publish.
func (c *Client) SetRecordTarget(ctx context.Context, domain string, target NewRecordTarget) (RecordTarget, error) {
	return put[RecordTarget](ctx, c, target, "domains", domain, "target")
}

// RemoveRecordTarget removes the DNS server and its key. What is published there stays.
func (c *Client) RemoveRecordTarget(ctx context.Context, domain string) error {
	return c.remove(ctx, "domains", domain, "target")
}

// ListTags lists the tags of the team, with the number of domains of each.
func (c *Client) ListTags(ctx context.Context) iter.Seq2[Tag, error] {
	return list[Tag](ctx, c, nil, "tags")
}

// Search finds domains, senders and reports, up to limit of each; 0 means the default of the server.
func (c *Client) Search(ctx context.Context, text string, limit int) iter.Seq2[Hit, error] {
	return list[Hit](ctx, c, struct {
		Text  string `query:"q"`
		Limit int    `query:"limit"`
	}{text, limit}, "search")
}

// SetParked marks a domain as not used for mail, or removes the mark.
func (c *Client) SetParked(ctx context.Context, domain string, parked bool) (Parked, error) {
	return put[Parked](ctx, c, map[string]bool{"parked": parked}, "domains", domain, "parked")
}

// AcceptForwarding accepts that a stricter policy affects this number of forwarded messages in 30 days.
// Nil withdraws the acceptance.
func (c *Client) AcceptForwarding(ctx context.Context, domain string, messages *int64) (Forwarding, error) {
	return put[Forwarding](ctx, c, map[string]*int64{"accepted": messages}, "domains", domain, "forwarding")
}

// CheckFilter selects checks of a domain.
type CheckFilter struct {
	Period
	PageSize int `query:"limit"` // at most 1000
}

// ListChecks lists the checks of a domain with their changes, the latest first.
func (c *Client) ListChecks(ctx context.Context, domain string, filter CheckFilter) iter.Seq2[Check, error] {
	return list[Check](ctx, c, filter, "domains", domain, "checks")
}

// GetLatestCheck returns the latest check of a domain.
func (c *Client) GetLatestCheck(ctx context.Context, domain string) (Check, error) {
	return get[Check](ctx, c, "domains", domain, "checks", "latest")
}

// GetCheckFile returns the records that the latest check of a domain proposes as a file in a format, such
// as bind, for a zone, "" for that of the domain.
func (c *Client) GetCheckFile(ctx context.Context, domain, format, zone string) (string, error) {
	return c.file(ctx, recordFile{Format: format, Zone: zone}, "domains", domain, "checks", "latest")
}

// ChangeFilter selects changes in the DNS. Kind is a part of a check, such as spf.
type ChangeFilter struct {
	Period
	Domain   string `query:"domain"`
	Tag      string `query:"tag"`
	Kind     string `query:"kind"`
	PageSize int    `query:"limit"`
}

// ListChanges lists the checks that found changes in the DNS, the latest first.
func (c *Client) ListChanges(ctx context.Context, filter ChangeFilter) iter.Seq2[DomainChange, error] {
	return list[DomainChange](ctx, c, filter, "changes")
}
