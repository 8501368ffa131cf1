package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd/dns"
)

// ZoneRecord is a record of a name below the zone. Sub is the labels below the name itself, "" for
// none. Type and Data are those of package zone.
type ZoneRecord struct {
	Sub  string
	Type dns.Type
	Data string
}

// contentVersion is the first line of records in the column content:
//
//	content = "" | "1" record*
//	record  = LF sub SP type SP data
//
// sub is "@" for the name itself, type a number. No data has a line break.
const contentVersion = "1"

// encodeContent returns the column content of records.
func encodeContent(records []ZoneRecord) (string, error) {
	if len(records) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(contentVersion)
	for _, r := range records {
		if strings.ContainsAny(r.Sub, " \n@") || strings.Contains(r.Data, "\n") {
			return "", fmt.Errorf("zone record %q %q: it has a line break, or a name that is not valid", r.Sub, r.Data)
		}
		sub := r.Sub
		if sub == "" {
			sub = "@"
		}
		fmt.Fprintf(&b, "\n%s %d %s", sub, r.Type, r.Data)
	}
	return b.String(), nil
}

// decodeContent returns the records of a column content.
func decodeContent(content string) ([]ZoneRecord, error) {
	if content == "" {
		return nil, nil
	}
	lines := strings.Split(content, "\n")
	if lines[0] != contentVersion {
		return nil, fmt.Errorf("content of a name of the zone: unknown version %q", lines[0])
	}
	records := make([]ZoneRecord, 0, len(lines)-1)
	for _, line := range lines[1:] {
		sub, rest, _ := strings.Cut(line, " ")
		number, data, found := strings.Cut(rest, " ")
		kind, err := strconv.ParseUint(number, 10, 16)
		if !found || err != nil {
			return nil, fmt.Errorf("content of a name of the zone: bad line %q", line)
		}
		if sub == "@" {
			sub = ""
		}
		records = append(records, ZoneRecord{Sub: sub, Type: dns.Type(kind), Data: data})
	}
	return records, nil
}
