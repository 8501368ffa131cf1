package truth

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// perDay is how many sources of a flow send on one day.
const perDay = 3

// row is a record of a report.
type row struct {
	source netip.Addr
	count  int
	flow   *flow
}

// report identifies a report: a reporter, and a number of days before today.
type report struct{ reporter, day int }

// Reports returns the reports of the domain as XML by file name, for receivers that see its mail
// until the day before today.
func (d *Domain) Reports(today time.Time) map[string]string {
	rows := map[report][]row{}
	for n, f := range d.flows {
		for day, count := range f.days {
			d.report(rows, f, n, day, count)
		}
	}
	files := make(map[string]string, len(rows))
	for at, records := range rows {
		begin := today.UTC().Truncate(24*time.Hour).AddDate(0, 0, -at.day)
		files[fmt.Sprintf("%s-%d-%d.xml", d.Name, at.reporter, at.day)] = d.xml(at, begin, records)
	}
	return files
}

// report adds the messages of a flow on a day to the reports. Large counts are divided between
// two reporters.
func (d *Domain) report(rows map[report][]row, f *flow, n, day, count int) {
	const large = 20
	sources := min(perDay, len(f.sources), count)
	for i := range sources {
		part := count / sources
		if i < count%sources {
			part++
		}
		source := f.sources[(day*perDay+i)%len(f.sources)]
		at := report{(n + day + i) % d.reporters, day}
		if part >= large {
			other := report{(at.reporter + 1) % d.reporters, day}
			rows[other] = append(rows[other], row{source, part / 3, f})
			part -= part / 3
		}
		rows[at] = append(rows[at], row{source, part, f})
	}
}

// xml returns a report in the schema of RFC 7489, appendix C.
func (d *Domain) xml(at report, begin time.Time, records []row) string {
	var b strings.Builder
	mode := "r"
	if d.tags.strict {
		mode = "s"
	}
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<feedback><report_metadata><org_name>Receiver %[1]d</org_name><email>reports@receiver%[1]d.example</email>
<report_id>%[2]s-%[1]d-%[3]d</report_id><date_range><begin>%[3]d</begin><end>%[4]d</end></date_range></report_metadata>
<policy_published><domain>%[2]s</domain><adkim>%[6]s</adkim><aspf>%[6]s</aspf><p>%[5]s</p><sp>%[7]s</sp><pct>%[8]d</pct></policy_published>
`, at.reporter+1, d.Name, begin.Unix(), begin.Unix()+86399, d.policy, mode, cmp.Or(d.tags.sp, d.policy), cmp.Or(d.tags.percent, 100))
	for _, r := range records {
		spf, dkim := d.passes(r.flow)
		disposition, reason := "none", ""
		switch {
		case r.flow.reason != "":
			reason = "<reason><type>" + r.flow.reason + "</type></reason>"
		case !spf && !dkim:
			disposition = d.applied()
		}
		fmt.Fprintf(&b, "<record><row><source_ip>%s</source_ip><count>%d</count><policy_evaluated><disposition>%s</disposition>"+
			"<dkim>%s</dkim><spf>%s</spf>%s</policy_evaluated></row><identifiers><header_from>%s</header_from></identifiers><auth_results>",
			r.source, r.count, disposition, word(dkim), word(spf), reason, r.flow.from)
		for _, a := range r.flow.dkim {
			fmt.Fprintf(&b, "<dkim><domain>%s</domain><selector>%s</selector><result>%s</result></dkim>", a.domain, a.selector, a.result)
		}
		fmt.Fprintf(&b, "<spf><domain>%s</domain><scope>mfrom</scope><result>%s</result></spf></auth_results></record>\n", r.flow.spf.domain, r.flow.spf.result)
	}
	b.WriteString("</feedback>\n")
	return b.String()
}

// applied is what receivers do with mail that fails.
func (d *Domain) applied() string {
	switch {
	case !d.tags.testing:
		return d.policy
	case d.policy == "reject":
		return "quarantine"
	}
	return "none"
}

func word(passes bool) string {
	if passes {
		return "pass"
	}
	return "fail"
}
