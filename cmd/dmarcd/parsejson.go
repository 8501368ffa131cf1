package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// jsonReports streams an array record by record, so that a report with a million records
// need not fit into memory. On error the array stays open, which marks it as incomplete.
type jsonReports struct{ jsonArray }

func (j *jsonReports) print(ctx context.Context, file string, item *intake.Item) error {
	if err := j.next(); err != nil {
		return err
	}
	if item.Aggregate != nil {
		return j.aggregate(ctx, file, item)
	}
	return printJSON(j.out, wire.NewReport(file, item.Report()))
}

// aggregate prints the metadata of a report, with its records as the last member.
func (j *jsonReports) aggregate(ctx context.Context, file string, item *intake.Item) error {
	var facts bytes.Buffer
	if err := printJSON(&facts, wire.NewReport(file, item.Report())); err != nil {
		return err
	}
	if _, err := j.out.Write(bytes.TrimSuffix(facts.Bytes(), []byte("\n}\n"))); err != nil {
		return err
	}
	if _, err := io.WriteString(j.out, ",\n  \"record_list\": ["); err != nil {
		return err
	}
	lines := json.NewEncoder(j.out) // ends each record with a newline
	lines.SetEscapeHTML(false)
	separator := "\n    "
	for record, err := range item.Aggregate.Records(ctx) {
		if err != nil {
			return err
		}
		if _, err := io.WriteString(j.out, separator); err != nil {
			return err
		}
		if err := lines.Encode(wire.NewAggregateRecord(record)); err != nil {
			return err
		}
		separator = "    ,"
	}
	closing := "  ]\n}\n"
	if item.Aggregate.Report.Records == 0 {
		closing = "]\n}\n"
	}
	_, err := io.WriteString(j.out, closing)
	return err
}
