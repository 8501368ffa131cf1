// Package probe sends a synthetic aggregate report (RFC 9990) as a receiver would: it
// looks up the mail servers of the address (RFC 5321 §5.1), connects to one, and sends the
// message. Whether the report is stored is left to package service.
package probe

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/dns"
)

const (
	// connectTimeout bounds the connection to one server, sendTimeout the whole session.
	connectTimeout = 5 * time.Second
	sendTimeout    = 15 * time.Second
	// maxServers is the number of mail servers to try.
	maxServers = 3
)

// Organization is the reporter of synthetic reports.
const Organization = "dmarcd self-test"

// Sender sends synthetic reports. It is safe for concurrent use.
type Sender struct {
	Resolver dns.Resolver
	// Dial connects to mail servers of the operator.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Local returns the address of the SMTP listener of this installation, "" if there is
	// none. It gets the message if no mail server of the address can be reached.
	Local func() string
	Now   func() time.Time
}

// Send sends a report about a domain with that id to an address. It returns the stages up to
// dmarcd.StageSpool, and whether the message was acknowledged.
func (s *Sender) Send(ctx context.Context, address, domain, id string) (stages []dmarcd.SelfTestStage, acknowledged bool) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	_, host, _ := strings.Cut(address, "@")
	began := s.Now()
	servers, reason := s.servers(ctx, host)
	mx := dmarcd.SelfTestStage{Name: dmarcd.StageMX, Passed: reason == "", Detail: reason, Took: s.Now().Sub(began)}
	if mx.Passed {
		mx.Detail = fmt.Sprintf("Mail for %s goes to %s.", host, strings.Join(servers, ", "))
	}
	began = s.Now()
	accepted := dmarcd.SelfTestStage{Name: dmarcd.StageSMTP}
	client, failures := s.connect(ctx, servers, address)
	if client != nil {
		accepted.Passed, accepted.Detail = true, "The server accepts mail for "+address+"."
		if tls, _ := client.Extension("STARTTLS"); !tls {
			accepted.Detail += " It offers no TLS."
		}
	} else {
		accepted.Detail = strings.Join(failures, " ")
		var local []string
		if client, local = s.connectTo(ctx, s.Local(), address); client != nil {
			accepted.Detail = strings.TrimSpace(accepted.Detail + " The report was sent to the local listener instead.")
		}
		accepted.Detail = strings.TrimSpace(accepted.Detail + " " + strings.Join(local, " "))
	}
	accepted.Took = s.Now().Sub(began)
	stages = []dmarcd.SelfTestStage{mx, accepted}
	if client == nil {
		return stages, false
	}
	defer func() { _ = client.Close() }() // what matters is acknowledged
	began = s.Now()
	spooled := dmarcd.SelfTestStage{Name: dmarcd.StageSpool, Passed: true, Detail: "The message was acknowledged: it is in the spool."}
	if err := s.transmit(client, address, domain, id); err != nil {
		spooled.Passed, spooled.Detail = false, fmt.Sprintf("The server did not accept the message: %v.", err)
	}
	spooled.Took = s.Now().Sub(began)
	return append(stages, spooled), spooled.Passed
}

// servers returns the mail servers of a host by preference, or why there are none.
func (s *Sender) servers(ctx context.Context, host string) (servers []string, problem string) {
	answer := s.Resolver.Resolve(ctx, dns.Question{Name: dns.Name(host), Type: dns.MX})
	switch {
	case answer.Outcome == dns.Inconclusive:
		return nil, fmt.Sprintf("The MX records of %s could not be looked up: %s.", host, answer.Reason)
	case len(answer.Records) == 0:
		return nil, fmt.Sprintf("%s has no MX record. Receivers need one, or an address, to send reports.", host)
	}
	records := slices.Clone(answer.Records)
	slices.SortStableFunc(records, func(a, b dns.Record) int { return int(a.Preference) - int(b.Preference) })
	for _, record := range records[:min(len(records), maxServers)] {
		servers = append(servers, strings.TrimSuffix(record.Host, "."))
	}
	return servers, ""
}

// connect returns a session with the first server that accepts the recipient, or the
// problems of all.
func (s *Sender) connect(ctx context.Context, servers []string, address string) (*smtp.Client, []string) {
	var problems []string
	for _, server := range servers {
		client, failed := s.connectTo(ctx, net.JoinHostPort(server, "25"), address)
		if client != nil {
			return client, nil
		}
		problems = append(problems, failed...)
	}
	return nil, problems
}

// connectTo returns a session with a server that accepts the recipient, or why there is
// none.
func (s *Sender) connectTo(ctx context.Context, server, address string) (*smtp.Client, []string) {
	if server == "" {
		return nil, nil
	}
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := s.Dial(dialing, "tcp", server)
	if err != nil {
		return nil, []string{fmt.Sprintf("%s cannot be reached: %v.", server, err)}
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // a connection without deadlines ends with the server
	client := smtp.NewClient(conn)
	client.CommandTimeout, client.SubmissionTimeout = sendTimeout, sendTimeout
	_, host, _ := strings.Cut(address, "@")
	if err = client.Hello(host); err == nil {
		err = client.Mail(address, nil)
	}
	if err == nil {
		err = client.Rcpt(address, nil)
	}
	if err != nil {
		_ = client.Close() // it refused
		return nil, []string{fmt.Sprintf("%s does not accept mail for %s: %v.", server, address, err)}
	}
	return client, nil
}

func (s *Sender) transmit(client *smtp.Client, address, domain, id string) error {
	body, err := s.message(address, domain, id)
	if err != nil {
		return err
	}
	data, err := client.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(body); err != nil {
		return err
	}
	return data.Close()
}

// message returns a report with one record of no messages.
func (s *Sender) message(address, domain, id string) ([]byte, error) {
	end := s.Now().UTC().Truncate(24 * time.Hour)
	begin := end.Add(-24 * time.Hour)
	var packed bytes.Buffer
	archive := gzip.NewWriter(&packed)
	_, err := fmt.Fprintf(archive, `<?xml version="1.0" encoding="UTF-8"?>
<feedback>
<report_metadata><org_name>%s</org_name><email>%s</email><report_id>%s</report_id><date_range><begin>%d</begin><end>%d</end></date_range></report_metadata>
<policy_published><domain>%s</domain><p>none</p></policy_published>
<record><row><source_ip>192.0.2.1</source_ip><count>0</count><policy_evaluated><disposition>none</disposition><dkim>fail</dkim><spf>fail</spf></policy_evaluated></row><identifiers><header_from>%s</header_from></identifiers><auth_results></auth_results></record>
</feedback>
`, Organization, address, id, begin.Unix(), end.Unix()-1, domain, domain)
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	_, host, _ := strings.Cut(address, "@")
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: %s <%s>\r\nTo: <%s>\r\nDate: %s\r\nMessage-ID: <%s@%s>\r\nSubject: Report Domain: %s Submitter: %s Report-ID: <%s>\r\n",
		Organization, address, address, s.Now().UTC().Format(time.RFC1123Z), id, host, domain, host, id)
	fmt.Fprintf(&b, "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: application/gzip\r\nContent-Disposition: attachment; filename=\"%s!%s!%d!%d.xml.gz\"\r\nContent-Transfer-Encoding: base64\r\n\r\n",
		host, domain, begin.Unix(), end.Unix()-1)
	encoded := base64.StdEncoding.EncodeToString(packed.Bytes())
	for len(encoded) > 0 {
		n := min(76, len(encoded))
		b.WriteString(encoded[:n] + "\r\n")
		encoded = encoded[n:]
	}
	return b.Bytes(), nil
}
