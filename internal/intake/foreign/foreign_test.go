package foreign_test

import (
	"bytes"
	"encoding/base64"
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

// split reads a file of a tool, and its reports by intake.
func split(t testing.TB, tool foreign.Tool, in io.Reader) read {
	t.Helper()
	var got read
	limits := intake.DefaultLimits()
	limits.Containers.Folder = t.TempDir()
	for write, err := range foreign.Split(tool, in, t.TempDir()) {
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

const csvColumns = "xml_schema,org_name,org_email,org_extra_contact_info,report_id,begin_date,end_date,normalized_timespan,errors,domain,adkim,aspf,p,sp,pct,fo," +
	"source_ip_address,source_country,source_reverse_dns,source_base_domain,source_name,source_type,source_asn,source_as_name,source_as_domain,count,spf_aligned,dkim_aligned,dmarc_aligned," +
	"disposition,policy_override_reasons,policy_override_comments,envelope_from,header_from,envelope_to,dkim_domains,dkim_selectors,dkim_results,spf_domains,spf_scopes,spf_results\n"

func csvRow(id, begin, end, count string) string {
	return "draft,Receiver,dmarc@receiver.example,https://receiver.example," + id + "," + begin + "," + end + ",False,,example.com,r,s,none,reject,100,," +
		"192.0.2.1,US,,,,,64496,\"Example, Inc.\",," + count + ",False,True,True,none,forwarded,none,bounce.example,example.com,,example.com,s1,pass,bounce.example,mfrom,fail\n"
}

const (
	srgSchema = "-- MySQL dump 10.13\n/*!40101 SET NAMES utf8 */;\nCREATE TABLE `dm_domains` (\n  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,\n  `fqdn` varchar(255) NOT NULL,\n  `active` tinyint(1) NOT NULL,\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `fqdn` (`fqdn`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8;\n" +
		"CREATE TABLE `dm_reports` (\n  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,\n  `domain_id` int(10) NOT NULL,\n  `begin_time` datetime NOT NULL,\n  `end_time` datetime NOT NULL,\n  `loaded_time` datetime NOT NULL,\n  `org` varchar(255) NOT NULL,\n  `external_id` varchar(255) NOT NULL,\n  `email` varchar(255) NOT NULL,\n  `extra_contact_info` varchar(255) DEFAULT NULL,\n  `error_string` text,\n  `policy_adkim` varchar(20) DEFAULT NULL,\n  `policy_aspf` varchar(20) DEFAULT NULL,\n  `policy_p` varchar(20) DEFAULT NULL,\n  `policy_sp` varchar(20) DEFAULT NULL,\n  `policy_np` varchar(20) DEFAULT NULL,\n  `policy_pct` varchar(20) DEFAULT NULL,\n  `policy_fo` varchar(20) DEFAULT NULL,\n  `seen` tinyint(1) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n" +
		"CREATE TABLE `dm_rptrecords` (\n  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,\n  `report_id` int(10) unsigned NOT NULL,\n  `ip` varbinary(16) NOT NULL,\n  `rcount` int(10) unsigned NOT NULL,\n  `disposition` tinyint(3) unsigned NOT NULL,\n  `reason` text,\n  `dkim_auth` text,\n  `spf_auth` text,\n  `dkim_align` tinyint(3) unsigned NOT NULL,\n  `spf_align` tinyint(3) unsigned NOT NULL,\n  `envelope_to` varchar(255) DEFAULT NULL,\n  `envelope_from` varchar(255) DEFAULT NULL,\n  `header_from` varchar(255) DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `report_id` (`report_id`)\n) ENGINE=InnoDB;\n"
	srgRows = "LOCK TABLES `dm_domains` WRITE;\nINSERT INTO `dm_domains` VALUES (7,'example.com',1);\nUNLOCK TABLES;\n" +
		"INSERT INTO `dm_reports` VALUES (3,7,'2026-11-01 00:00:00','2026-11-01 23:59:59','2026-11-02 06:00:00','Receiver','r-1','dmarc@receiver.example','https://receiver.example',NULL,'r','s','none','reject',NULL,'100','',0);\n"
	srgLog = "CREATE TABLE `dm_reportlog` (\n  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,\n  `user_id` int(10) unsigned NOT NULL DEFAULT 0,\n  `domain` varchar(255) DEFAULT NULL,\n  `external_id` varchar(255) DEFAULT NULL,\n  `event_time` datetime NOT NULL,\n  `filename` varchar(255) DEFAULT NULL,\n  `source` tinyint(3) unsigned NOT NULL,\n  `success` tinyint(1) NOT NULL,\n  `message` text DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n" +
		"INSERT INTO `dm_reportlog` VALUES (1,0,'example.com','r-1','2026-11-02 06:00:00','a.zip',1,1,NULL),(2,0,NULL,NULL,'2026-11-02 06:00:01',NULL,2,0,'Incorrect XML report file');\n"
	srgRecord = `(1,3,_binary '` + "\xc0\\0\x02\x01" + `',2,2,'[{\"type\":\"forwarded\"}]','[{\"domain\":\"example.com\",\"selector\":\"s1\",\"result\":\"pass\"}]','[{\"domain\":\"bounce.example\",\"scope\":\"mfrom\",\"result\":\"fail\"}]',2,0,NULL,'bounce.example','example.com')`

	dmarctsSchema = "CREATE TABLE `report` (\n  `serial` int unsigned NOT NULL AUTO_INCREMENT,\n  `mindate` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,\n  `maxdate` timestamp NULL DEFAULT NULL,\n  `domain` varchar(255) NOT NULL,\n  `org` varchar(255) NOT NULL,\n  `reportid` varchar(255) NOT NULL,\n  `email` varchar(255) DEFAULT NULL,\n  `extra_contact_info` varchar(255) DEFAULT NULL,\n  `policy_adkim` varchar(20) DEFAULT NULL,\n  `policy_aspf` varchar(20) DEFAULT NULL,\n  `policy_p` varchar(20) DEFAULT NULL,\n  `policy_sp` varchar(20) DEFAULT NULL,\n  `policy_pct` tinyint unsigned DEFAULT NULL,\n  `raw_xml` mediumtext,\n  PRIMARY KEY (`serial`),\n  UNIQUE KEY `domain` (`domain`,`org`,`reportid`)\n) ENGINE=InnoDB ROW_FORMAT=COMPRESSED;\n" +
		"CREATE TABLE `rptrecord` (\n  `id` int unsigned NOT NULL AUTO_INCREMENT,\n  `serial` int unsigned NOT NULL,\n  `ip` int unsigned DEFAULT NULL,\n  `ip6` binary(16) DEFAULT NULL,\n  `rcount` int unsigned NOT NULL,\n  `disposition` enum('none','quarantine','reject','unknown') DEFAULT NULL,\n  `reason` varchar(255) DEFAULT NULL,\n  `dkimdomain` varchar(255) DEFAULT NULL,\n  `dkimresult` enum('none','pass','fail','neutral','policy','temperror','permerror','unknown') DEFAULT NULL,\n  `spfdomain` varchar(255) DEFAULT NULL,\n  `spfresult` enum('none','neutral','pass','fail','softfail','temperror','permerror','unknown') DEFAULT NULL,\n  `spf_align` enum('fail','pass','unknown') NOT NULL,\n  `dkim_align` enum('fail','pass','unknown') NOT NULL,\n  `identifier_hfrom` varchar(255) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n);\n"
	dmarctsReport = "(1,'2026-11-01 00:00:00','2026-11-01 23:59:59','example.com','Receiver','r-1','dmarc@receiver.example','https://receiver.example','r','s','none','reject',100,'')"
	dmarctsRecord = "(1,1,3221225985,NULL,2,'none','forwarded','example.com','pass','bounce.example','fail','fail','pass','example.com')"
)

// original is a report as dmarcts stores it.
const original = `<feedback><report_metadata><org_name>Original</org_name><report_id>o-1</report_id><date_range><begin>1793491200</begin><end>1793577599</end></date_range></report_metadata>` +
	`<policy_published><domain>example.com</domain><p>none</p></policy_published><record><row><source_ip>192.0.2.1</source_ip><count>5</count></row><identifiers><header_from>example.com</header_from></identifiers></record></feedback>`

func TestSplit(t *testing.T) {
	t.Parallel()
	jsonOne := head
	second := strings.Replace(jsonOne, "r-1", "r-2", 1)
	originalLines := []string{"report Original|||o-1|1793491200-1793577599||example.com p=none sp= np= adkim= aspf= pct= fo=", "192.0.2.1 5  / example.com   [][][]"}
	gzipped := base64.StdEncoding.EncodeToString(packtest.Gzip(original))
	for _, tt := range []struct {
		name    string
		tool    foreign.Tool
		in      string
		reports []string
		invalid []string
	}{
		{"JSON, one report", foreign.Parsedmarc, jsonReport("r-1", jsonRecord), []string{jsonOne, recordLine}, nil},
		{"JSON, an array", foreign.Parsedmarc, "\n[" + jsonReport("r-1", jsonRecord, jsonRecord) + ",\n" + jsonReport("r-2", jsonRecord) + "]\n", []string{jsonOne, recordLine, recordLine, second, recordLine}, nil},
		{
			"JSON, all kinds", foreign.Parsedmarc,
			`{"aggregate_reports": [` + jsonReport("r-1", jsonRecord) + `], "forensic_reports": [` + jsonFailure + `], "smtp_tls_reports": [` + jsonTLS + `]}`,
			[]string{jsonOne, recordLine, failureLine, tlsLines, tlsPolicyLine},
			nil,
		},
		{"JSON in gzip", foreign.Parsedmarc, string(packtest.Gzip(jsonReport("r-1", jsonRecord))), []string{jsonOne, recordLine}, nil},
		{
			"JSON with bad records", foreign.Parsedmarc, "[" + jsonReport("r-1", `{"count": -1}`, jsonRecord, `{"count": {}}`) + `, 5, {"other": 1}]`,
			[]string{jsonOne, recordLine},
			[]string{
				"line 5: a record cannot be used: count is \"-1\", not a number of messages",
				"line 12: a record cannot be used: json: cannot unmarshal object into Go struct field jsonRecord.Count of type json.Number",
				"line 12: 5 is not a report", "line 12: the object that begins here is not a report: it has neither records, policies nor a feedback_type",
			},
		},
		{
			"JSON that versions before 10.0 have continued", foreign.Parsedmarc, "[\n" + jsonReport("r-1", jsonRecord) + "\n],\n" + jsonReport("r-2", jsonRecord) + ",\n" + jsonReport("r-1", jsonRecord) + "\n],\n" +
				strings.Replace(jsonReport("r-2", jsonRecord), "https://receiver.example", `\\\" ],[ {`, 1) + "\n]",
			[]string{jsonOne, recordLine, second, recordLine, jsonOne, recordLine, strings.Replace(second, "https://receiver.example", `\" ],[ {`, 1), recordLine},
			nil,
		},
		{
			"JSON with attributes and without values", foreign.Parsedmarc,
			strings.NewReplacer(`"org_email": "dmarc@receiver.example"`, `"org_email": {"@xml:lang": "en", "#text": "dmarc@receiver.example"}`,
				`"errors": []`, `"errors": [null, "one", {"@lang": "en", "#text": "two"}, {"@lang": "en"}]`,
				`{"type": "forwarded", "comment": null}`, `{"type": null, "comment": null}, {"type": "local_policy", "comment": {"@lang": "en", "#text": "arc=pass"}}`,
				`"selector": "s1", "result": "pass"`, `"selector": "none", "result": "pass", "human_result": null`,
				`"envelope_to": null`, `"envelope_to": {"@a": "b"}`).Replace(jsonReport("r-1", jsonRecord)),
			[]string{strings.Replace(head, "||", "|one,two|", 1), strings.NewReplacer("{forwarded }", "{local_policy arc=pass}", "example.com s1 pass", "example.com  pass").Replace(recordLine)},
			nil,
		},
		{
			"JSON of a failure report with alignment", foreign.Parsedmarc,
			strings.Replace(jsonFailure, `"authentication_mechanisms": []`, `"authentication_mechanisms": ["spf", "dkim"], "dkim_selector": "s1", "incidents": "2"`, 1),
			[]string{strings.Replace(failureLine, "[]", "[spf dkim]s1", 1)},
			nil,
		},
		{
			"JSON of a TLS report with counts as text", foreign.Parsedmarc,
			strings.NewReplacer(`count": 7`, `count": "7"`, `count": 3,`, `count": "3",`, `"policy_domain"`, `"mx_host_patterns": [null], "policy_domain"`).Replace(jsonTLS),
			[]string{tlsLines, tlsPolicyLine},
			nil,
		},
		{
			"JSON of a TLS report with a bad count", foreign.Parsedmarc, strings.Replace(jsonTLS, `count": 7`, `count": -7`, 1), nil,
			[]string{`line 1: the object that begins here is not a report: "-7" is not a number of messages or sessions`},
		},
		{"JSON that is cut off", foreign.Parsedmarc, "[" + jsonReport("r-1", jsonRecord) + ",\n" + jsonReport("r-2", jsonRecord)[:300], []string{jsonOne, recordLine}, []string{"line 11: the JSON is malformed or cut off: unexpected EOF"}},
		{"an empty file", foreign.Parsedmarc, " \n", nil, []string{"line 1: the file is empty"}},
		{
			"CSV", foreign.Parsedmarc, "\ufeff" + csvColumns + csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2") + csvRow("r-2", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2") +
				csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2"),
			[]string{head, recordLine, recordLine, second, recordLine},
			nil,
		},
		{
			"CSV of several days", foreign.Parsedmarc, csvColumns + csvRow("r-1", "2026-11-02 00:00:00", "2026-11-02 23:59:59", "2") + csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2"),
			[]string{strings.Replace(head, "1793577599", "1793663999", 1), recordLine, recordLine},
			nil,
		},
		{
			"CSV with bad rows", foreign.Parsedmarc, csvColumns + csvRow("r-1", "yesterday", "2026-11-01 23:59:59", "2") + csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "two") + "short\n" +
				csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2"),
			[]string{head, recordLine},
			[]string{
				"line 2: a record cannot be used: \"yesterday\" is not a time such as 2026-11-15 00:00:00",
				"line 3: a record cannot be used: \"two\" is not a number of messages or sessions",
				"line 4: the row has 1 fields and the table 41 columns: another version of parsedmarc has continued the file; import the JSON, or split the file and begin each part with the columns of its version",
			},
		},
		{
			"CSV of TLS reports", foreign.Parsedmarc, "organization_name,begin_date,end_date,report_id,result_type,successful_session_count,failed_session_count,policy_domain,policy_type,policy_strings,mx_host_patterns,sending_mta_ip,receiving_ip,receiving_mx_hostname,receiving_mx_helo,additional_info_uri,failure_reason_code\n" +
				"Receiver,2026-11-01T00:00:00Z,2026-11-01T23:59:59Z,t-1,,7,3,example.com,sts,version: STSv1,,,,,,,\n" +
				"Receiver,2026-11-01T00:00:00Z,2026-11-01T23:59:59Z,t-1,validation-failure,,3,,,version: STSv1,,192.0.2.5,192.0.2.6,mx.example.com,,,\n",
			[]string{tlsLines, tlsPolicyLine},
			nil,
		},
		{
			"CSV of failure reports", foreign.Parsedmarc, "feedback_type,user_agent,version,original_envelope_id,original_mail_from,original_rcpt_to,arrival_date,arrival_date_utc,subject,message_id,authentication_results,dkim_domain,source_ip_address,delivery_result,auth_failure,reported_domain,authentication_mechanisms,sample_headers_only\n" +
				"auth-failure,Lua/1.0,1.0,,a@example.com,b@receiver.example,\"Sun, 01 Nov 2026 11:20:27 +0200\",2026-11-01 09:20:27,hello,<1@example.com>,dmarc=fail,,192.0.2.9,policy,dmarc,example.com,,False\n",
			[]string{failureLine},
			nil,
		},
		{
			"CSV without reasons", foreign.Parsedmarc, csvColumns + strings.Replace(csvRow("r-1", "2026-11-01 00:00:00", "2026-11-01 23:59:59", "2"), "forwarded,none", "none,none", 1),
			[]string{head, strings.Replace(recordLine, "{forwarded }", "", 1)},
			nil,
		},
		{
			"CSV of failure reports without values", foreign.Parsedmarc, "feedback_type,user_agent,reported_domain\n,,\n", nil,
			[]string{"line 2: the row is empty: versions of parsedmarc before 9.0.6 write no values into the table of failure reports; import the JSON"},
		},
		{"CSV of something else", foreign.Parsedmarc, "a,b\n1,2\n", nil, []string{`line 1: the file is neither JSON nor a table of parsedmarc: the columns are "a,b"`}},
		{"dmarc-srg", foreign.DMARCSRG, srgSchema + srgRows + "INSERT INTO `dm_rptrecords` VALUES " + srgRecord + "," + srgRecord + ";\n", []string{head, recordLine, recordLine}, nil},
		{
			"dmarc-srg with its log, and elements without content", foreign.DMARCSRG, srgSchema + srgLog + srgRows + "INSERT INTO `dm_rptrecords` VALUES " +
				strings.NewReplacer(`'[{\"type`, `'[[],{\"type`, `\"}]','[{\"domain\":\"bounce`, `\"},[]]','[{\"domain\":\"bounce`).Replace(srgRecord) + ";\n",
			[]string{head, recordLine},
			nil,
		},
		{
			"dmarc-srg, names of columns and hexadecimal", foreign.DMARCSRG, srgSchema + srgRows +
				"INSERT INTO `dm_rptrecords` (`report_id`,`ip`,`rcount`,`disposition`,`dkim_align`,`spf_align`,`header_from`) VALUES (3,0x20010DB8000000000000000000000001,4,0,0,1,'example.com');",
			[]string{head, "2001:db8::1 4 reject fail/ example.com   [][][]"},
			nil,
		},
		{
			"dmarc-srg with bad rows", foreign.DMARCSRG, srgSchema + srgRows + "INSERT INTO `dm_rptrecords` VALUES (1,3,'abc',2,2,NULL,NULL,NULL,2,0,NULL,NULL,NULL),\n(1,9,'abcd',2,2,NULL,NULL,NULL,2,0,NULL,NULL,NULL),\n(1,3,'abcd',2,5,NULL,NULL,NULL,2,0,NULL,NULL,NULL);\nINSERT INTO `dm_rptrecords` VALUES (1,'",
			[]string{head},
			[]string{
				"line 52: a record cannot be used: the address has 3 bytes, not 4 or 16",
				`line 54: a record cannot be used: disposition, dkim_align and spf_align are "5", "2" and "0", not numbers from 0 to 2`,
				"line 55: the file ends within the text that begins here",
				"line 53: a record belongs to report 9, which the dump does not have",
			},
		},
		{"dmarcts", foreign.DMARCTS, dmarctsSchema + "INSERT INTO `report` VALUES " + dmarctsReport + ";\nINSERT INTO `rptrecord` VALUES " + dmarctsRecord + ";\n", []string{
			head, "192.0.2.1 2 none pass/fail example.com   [{forwarded }][{example.com  pass }][{bounce.example  fail }]",
		}, nil},
		{
			"dmarcts, records first, several signatures", foreign.DMARCTS, dmarctsSchema +
				"INSERT INTO `rptrecord` VALUES (1,1,NULL,_binary ' \x01\r\xb8\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\x01',3,'unknown','','a.example/b.example','pass',NULL,'unknown','unknown','fail','example.com');\nINSERT INTO `report` VALUES " + dmarctsReport + ";\n",
			[]string{head, "2001:db8::1 3  fail/ example.com   [][{a.example   } {b.example   }][]"},
			nil,
		},
		{"dmarcts with the original", foreign.DMARCTS, dmarctsSchema + "INSERT INTO `report` VALUES " + strings.Replace(dmarctsReport, "100,''", "100,'"+original+"'", 1) + ";\nINSERT INTO `rptrecord` VALUES " + dmarctsRecord + ";\n", originalLines, nil},
		{"dmarcts with the original in gzip", foreign.DMARCTS, dmarctsSchema + "INSERT INTO `report` VALUES " + strings.Replace(dmarctsReport, "100,''", "100,'"+gzipped+"'", 1) + ";\n", originalLines, nil},
		{"a dump of something else", foreign.DMARCTS, "CREATE TABLE `a` (`b` int);\nINSERT INTO `a` VALUES (1);\n", nil, []string{"line 3: the file has no rows with the columns reportid and rcount; is it a dump of this tool, made with its table definitions?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := split(t, tt.tool, strings.NewReader(tt.in))
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
