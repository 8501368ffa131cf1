package foreign_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/intake/foreign"
	"github.com/dmarcd/dmarcd/internal/musttest"
	"github.com/dmarcd/dmarcd/internal/packtest"
)

// read is what was read of a file.
type read struct {
	// reports are lines about reports and their records, as intake reads them.
	reports []string
	// invalid are the errors about lines.
	invalid []string
	fatal   error
}

// split reads a file, and its reports by intake.
func split(t testing.TB, in io.Reader) read {
	t.Helper()
	var got read
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	for write, err := range foreign.Split(in, t.TempDir()) {
		var line *foreign.LineError
		switch {
		case errors.As(err, &line):
			if !errors.Is(err, dmarcd.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
			got.invalid = append(got.invalid, err.Error())
			continue
		case err != nil:
			got.fatal = err
			continue
		case got.fatal != nil:
			t.Error("a report comes after an error that ends the file")
		}
		var document bytes.Buffer
		musttest.Do(t, write(&document))
		err = intake.NewReader(limits).Read(t.Context(), bytes.NewReader(document.Bytes()), func(item *intake.Item) error {
			if item.Err != nil {
				t.Errorf("intake rejects it: %v\n%s", item.Err, document.Bytes())
			} else {
				got.reports = append(got.reports, describe(t, item)...)
			}
			return nil
		})
		if err != nil {
			t.Errorf("intake cannot read it: %v\n%s", err, document.Bytes())
		}
	}
	return got
}

func describe(t testing.TB, item *intake.Item) []string {
	t.Helper()
	switch {
	case item.Aggregate != nil:
		r := item.Aggregate.Report
		m, p := r.Metadata, r.Policy
		lines := []string{fmt.Sprint("report ", m.OrgName, "|", m.Email, "|", m.ExtraContact, "|", m.ReportID, "|", m.Begin, "-", m.End, "|", strings.Join(m.Errors, ","),
			"|", p.Domain, " p=", p.P, " sp=", p.SP, " np=", p.NP, " adkim=", p.ADKIM, " aspf=", p.ASPF, " pct=", p.Percent, " fo=", p.FailureOptions)}
		for record, err := range item.Aggregate.Records(t.Context()) {
			musttest.Do(t, err)
			lines = append(lines, describeRecord(record))
		}
		return lines
	case item.Failure != nil:
		f := item.Failure
		return []string{fmt.Sprint("failure ", f.ReportedDomain, "|", f.SourceIP, "|", f.AuthFailure, "|", f.ArrivalDate.Unix(), "|", f.DeliveryResult, "|", f.From, "|", f.Misaligned, f.DKIMSelector)}
	default:
		r := item.TLS
		lines := []string{fmt.Sprint("tls ", r.OrgName, "|", r.ReportID, "|", r.Begin, "-", r.End)}
		for _, p := range r.Policies {
			lines = append(lines, fmt.Sprint(p.Type, " ", p.Domain, " ", p.Successful, "/", p.Failed, " ", strings.Join(p.Strings, ","), " ", p.Failures))
		}
		return lines
	}
}

func describeRecord(r aggregate.Record) string {
	return fmt.Sprintf("%s %d %s %s/%s %s %s %s %v%v%v", r.Source, r.Count, r.Disposition, r.DKIM, r.SPF, r.HeaderFrom, r.EnvelopeFrom, r.EnvelopeTo, r.Reasons, r.DKIMResults, r.SPFResults)
}

const (
	head     = "report Receiver|dmarc@receiver.example|https://receiver.example|r-1|1793491200-1793577599||example.com p=none sp=reject np= adkim=r aspf=s pct=100 fo="
	tlsLines = "tls Receiver|t-1|1793491200-1793577599"
)

// jsonReport is an aggregate report as parsedmarc writes it, with these records.
func jsonReport(id string, records ...string) string {
	return `{"xml_schema": "draft", "report_metadata": {"org_name": "Receiver", "org_email": "dmarc@receiver.example",
  "org_extra_contact_info": "https://receiver.example", "report_id": "` + id + `", "begin_date": "2026-11-01 01:00:00", "end_date": "2026-11-02 00:59:59",
  "timespan_requires_normalization": false, "original_timespan_seconds": 86399, "errors": []},
 "policy_published": {"domain": "example.com", "adkim": "r", "aspf": "s", "p": "none", "sp": "reject", "pct": 100, "fo": null},
 "records": [` + strings.Join(records, ",\n") + `]}`
}

const jsonRecord = `{"source": {"ip_address": "192.0.2.1", "country": null, "reverse_dns": null, "asn": 64496}, "count": 2,
  "alignment": {"spf": false, "dkim": true, "dmarc": true},
  "policy_evaluated": {"disposition": "none", "dkim": "pass", "spf": "fail", "policy_override_reasons": [{"type": "forwarded", "comment": null}]},
  "identifiers": {"header_from": "example.com", "envelope_from": "bounce.example", "envelope_to": null},
  "auth_results": {"dkim": [{"domain": "example.com", "selector": "s1", "result": "pass"}], "spf": [{"domain": "bounce.example", "scope": "mfrom", "result": "fail"}]},
  "normalized_timespan": false, "interval_begin": "2026-11-01 00:00:00", "interval_end": "2026-11-01 23:59:59"}`

const recordLine = "192.0.2.1 2 none pass/fail example.com bounce.example  [{forwarded }][{example.com s1 pass }][{bounce.example mfrom fail }]"

const jsonFailure = `{"feedback_type": "auth-failure", "user_agent": "Lua/1.0", "version": "1.0", "original_mail_from": "a@example.com", "original_rcpt_to": "b@receiver.example",
 "arrival_date": "Sun, 01 Nov 2026 11:20:27 +0200", "arrival_date_utc": "2026-11-01 09:20:27", "message_id": "<1@example.com>",
 "authentication_results": "dmarc=fail (p=none) header.from=example.com", "delivery_result": "policy", "auth_failure": ["dmarc"], "reported_domain": "example.com",
 "source": {"ip_address": "192.0.2.9", "country": null}, "authentication_mechanisms": [], "original_envelope_id": null, "dkim_domain": null, "sample_headers_only": false,
 "sample": "Date: Sun, 01 Nov 2026 11:20:27 +0200\nFrom: \"A\" <a@example.com>\nSubject: hello\n\nbody\n", "parsed_sample": {"subject": "hello"}}`

const failureLine = "failure example.com|192.0.2.9|dmarc|1793524827|policy|redacted@example.com|[]"

const jsonTLS = `{"organization_name": "Receiver", "begin_date": "2026-11-01T00:00:00Z", "end_date": "2026-11-01T23:59:59Z", "report_id": "t-1", "contact_info": "tls@receiver.example",
 "policies": [{"policy_domain": "example.com", "policy_type": "sts", "policy_strings": ["version: STSv1"], "successful_session_count": 7, "failed_session_count": 3,
  "failure_details": [{"result_type": "validation-failure", "failed_session_count": 3, "sending_mta_ip": "192.0.2.5", "receiving_ip": "192.0.2.6", "receiving_mx_hostname": "mx.example.com"}]}]}`

const tlsPolicyLine = "sts example.com 7/3 version: STSv1 [{validation-failure 192.0.2.5 mx.example.com  192.0.2.6 3  }]"

func TestSplit(t *testing.T) {
	t.Parallel()
	jsonOne := head
	second := strings.Replace(jsonOne, "r-1", "r-2", 1)
	for _, tt := range []struct {
		name    string
		in      string
		reports []string
		invalid []string
	}{
		{"JSON, one report", jsonReport("r-1", jsonRecord), []string{jsonOne, recordLine}, nil},
		{"JSON, an array", "\n[" + jsonReport("r-1", jsonRecord, jsonRecord) + ",\n" + jsonReport("r-2", jsonRecord) + "]\n", []string{jsonOne, recordLine, recordLine, second, recordLine}, nil},
		{
			"JSON, all kinds",
			`{"aggregate_reports": [` + jsonReport("r-1", jsonRecord) + `], "forensic_reports": [` + jsonFailure + `], "smtp_tls_reports": [` + jsonTLS + `]}`,
			[]string{jsonOne, recordLine, failureLine, tlsLines, tlsPolicyLine},
			nil,
		},
		{"JSON in gzip", string(packtest.Gzip(jsonReport("r-1", jsonRecord))), []string{jsonOne, recordLine}, nil},
		{
			"JSON with bad records", "[" + jsonReport("r-1", `{"count": -1}`, jsonRecord, `{"count": {}}`) + `, 5, {"other": 1}]`,
			[]string{jsonOne, recordLine},
			[]string{
				"line 5: a record cannot be used: count is \"-1\", not a number of messages",
				"line 12: a record cannot be used: json: cannot unmarshal object into Go struct field jsonRecord.Count of type json.Number",
				"line 12: 5 is not a report", "line 12: the object that begins here is not a report: it has neither records, policies nor a feedback_type",
			},
		},
		{
			"JSON that versions before 10.0 have continued", "[\n" + jsonReport("r-1", jsonRecord) + "\n],\n" + jsonReport("r-2", jsonRecord) + ",\n" + jsonReport("r-1", jsonRecord) + "\n],\n" +
				strings.Replace(jsonReport("r-2", jsonRecord), "https://receiver.example", `\\\" ],[ {`, 1) + "\n]",
			[]string{jsonOne, recordLine, second, recordLine, jsonOne, recordLine, strings.Replace(second, "https://receiver.example", `\" ],[ {`, 1), recordLine},
			nil,
		},
		{
			"JSON with attributes and without values",
			strings.NewReplacer(`"org_email": "dmarc@receiver.example"`, `"org_email": {"@xml:lang": "en", "#text": "dmarc@receiver.example"}`,
				`"errors": []`, `"errors": [null, "one", {"@lang": "en", "#text": "two"}, {"@lang": "en"}]`,
				`{"type": "forwarded", "comment": null}`, `{"type": null, "comment": null}, {"type": "local_policy", "comment": {"@lang": "en", "#text": "arc=pass"}}`,
				`"selector": "s1", "result": "pass"`, `"selector": "none", "result": "pass", "human_result": null`,
				`"envelope_to": null`, `"envelope_to": {"@a": "b"}`).Replace(jsonReport("r-1", jsonRecord)),
			[]string{strings.Replace(head, "||", "|one,two|", 1), strings.NewReplacer("{forwarded }", "{local_policy arc=pass}", "example.com s1 pass", "example.com  pass").Replace(recordLine)},
			nil,
		},
		{
			"JSON of a failure report with alignment",
			strings.Replace(jsonFailure, `"authentication_mechanisms": []`, `"authentication_mechanisms": ["spf", "dkim"], "dkim_selector": "s1", "incidents": "2"`, 1),
			[]string{strings.Replace(failureLine, "[]", "[spf dkim]s1", 1)},
			nil,
		},
		{
			"JSON of a TLS report with counts as text",
			strings.NewReplacer(`count": 7`, `count": "7"`, `count": 3,`, `count": "3",`, `"policy_domain"`, `"mx_host_patterns": [null], "policy_domain"`).Replace(jsonTLS),
			[]string{tlsLines, tlsPolicyLine},
			nil,
		},
		{
			"JSON of a TLS report with a bad count", strings.Replace(jsonTLS, `count": 7`, `count": -7`, 1), nil,
			[]string{`line 1: the object that begins here is not a report: "-7" is not a number of messages or sessions`},
		},
		{"JSON that is cut off", "[" + jsonReport("r-1", jsonRecord) + ",\n" + jsonReport("r-2", jsonRecord)[:300], []string{jsonOne, recordLine}, []string{"line 11: the JSON is malformed or cut off: unexpected EOF"}},
		{
			"JSON of the queries in docs/moving.md, one report per line",
			`{"report_metadata": {"org_name": "Receiver", "org_email": "dmarc@receiver.example", "org_extra_contact_info": "https://receiver.example", "report_id": "r-1", "begin_date": "2026-11-01 00:00:00", "end_date": "2026-11-01 23:59:59", "errors": null}, ` +
				`"policy_published": {"domain": "example.com", "adkim": "r", "aspf": "s", "p": "none", "sp": "reject", "np": null, "pct": "100", "fo": ""}, ` +
				`"records": [{"source": {"ip_address": "192.0.2.1"}, "count": 2, "policy_evaluated": {"disposition": "none", "dkim": "pass", "spf": "fail", "policy_override_reasons": [{},{"type":"forwarded"}]}, ` +
				`"identifiers": {"header_from": "example.com", "envelope_from": "bounce.example", "envelope_to": null}, ` +
				`"auth_results": {"dkim": [{"domain":"example.com","selector":"s1","result":"pass"},{}], "spf": [{},{"domain":"bounce.example","scope":"mfrom","result":"fail"}]}}]}` + "\n" +
				`{"report_metadata": {"org_name": "Empty", "org_email": null, "report_id": "e-1", "begin_date": "2026-11-01 00:00:00", "end_date": "2026-11-01 23:59:59"}, "policy_published": {"domain": "example.com", "p": "none", "pct": null}, "records": []}`,
			[]string{head, recordLine, "report Empty|||e-1|1793491200-1793577599||example.com p=none sp= np= adkim= aspf= pct= fo="},
			nil,
		},
		{"an empty file", " \n", nil, []string{"line 1: the file is empty"}},
		{"CSV", "\ufeffa,b\n1,2\n", nil, []string{"line 1: the JSON is malformed or cut off: invalid character 'a' looking for beginning of value"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := split(t, strings.NewReader(tt.in))
			if got.fatal != nil {
				t.Errorf("got error %v", got.fatal)
			}
			if diff := cmp.Diff(tt.reports, got.reports); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.invalid, got.invalid); diff != "" {
				t.Errorf("invalid (-want +got):\n%s", diff)
			}
		})
	}
}
