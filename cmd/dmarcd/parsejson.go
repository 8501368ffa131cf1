package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/dmarcd/dmarcd/internal/intake"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// jsonReports prints an array, record by record: a report of a million records is
// not held in memory. Where it breaks, the array stays open, so that nobody takes it
// for the whole.
type jsonReports struct {
	out  io.Writer
	some bool
}

func (j *jsonReports) tell(ctx context.Context, file string, item *intake.Item) error {
	separator := "[\n"
	if j.some {
		separator = ",\n"
	}
	j.some = true
	if _, err := io.WriteString(j.out, separator); err != nil {
		return err
	}
	if item.Aggregate != nil {
		return j.aggregate(ctx, file, item)
	}
	return printJSON(j.out, wire.NewReport(file, item.Report()))
}

// aggregate prints the facts of a report, and its records as their last member.
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
	lines := json.NewEncoder(j.out) // ends each record with the end of the line
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

func (j *jsonReports) end() error {
	closing := "]\n"
	if !j.some {
		closing = "[]\n"
	}
	_, err := io.WriteString(j.out, closing)
	return err
}
