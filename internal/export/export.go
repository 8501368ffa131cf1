// Package export writes records of aggregate reports as Parquet, NDJSON or CSV, and sends
// messages to syslog servers (RFC 5424). The columns are those of wire.ExportedRecord. What is
// exported and in which order is up to the caller.
package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/internal/wire"
)

// Writer writes rows. Nothing is complete before Close, which does not close the output.
type Writer interface {
	// Write writes one row about a record of report.
	Write(columns wire.ExportedColumns, report *dmarcd.Report) error
	Close() error
}

// Format is a file format.
type Format string

// The formats.
const (
	Parquet Format = "parquet"
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
)

// Formats returns all formats.
func Formats() []Format { return []Format{Parquet, NDJSON, CSV} }

// NewWriter returns a writer of a format.
func NewWriter(format Format, out io.Writer) (Writer, error) {
	switch format {
	case Parquet:
		return newParquetWriter(out), nil
	case NDJSON:
		buffered := bufio.NewWriter(out)
		encoder := json.NewEncoder(buffered)
		encoder.SetEscapeHTML(false)
		return &jsonWriter{buffered, encoder}, nil
	case CSV:
		return newCSVWriter(out)
	}
	return nil, fmt.Errorf("there is no format %q; the formats are %q", format, Formats())
}

type jsonWriter struct {
	out     *bufio.Writer
	encoder *json.Encoder
}

func (w *jsonWriter) Write(columns wire.ExportedColumns, report *dmarcd.Report) error {
	return w.encoder.Encode(wire.NewExportedRecord(columns, report))
}

func (w *jsonWriter) Close() error { return w.out.Flush() }

// rowGroup is the number of rows that a Parquet writer holds in memory.
const rowGroup = 50_000

// parquetRow is a row with times as Parquet has them.
type parquetRow struct {
	wire.ExportedColumns

	Day        int32     `parquet:"day,date"`
	Begin      time.Time `parquet:"begin,timestamp(millisecond)"`
	End        time.Time `parquet:"end,timestamp(millisecond)"`
	ReceivedAt time.Time `parquet:"received_at,timestamp(millisecond)"`
}

type parquetWriter struct {
	out *parquet.GenericWriter[parquetRow]
	row [1]parquetRow
}

func newParquetWriter(out io.Writer) *parquetWriter {
	return &parquetWriter{out: parquet.NewGenericWriter[parquetRow](out,
		parquet.Compression(&zstd.Codec{}), parquet.MaxRowsPerRowGroup(rowGroup), parquet.CreatedBy("dmarcd", "", ""))}
}

func (w *parquetWriter) Write(columns wire.ExportedColumns, report *dmarcd.Report) error {
	w.row[0] = parquetRow{columns, int32(dmarcd.DayOf(report.Begin)), report.Begin, report.End, report.ReceivedAt}
	_, err := w.out.Write(w.row[:])
	return err
}

func (w *parquetWriter) Close() error { return w.out.Close() }

type csvWriter struct {
	out    *csv.Writer
	fields []reflect.StructField
	row    []string
}

func newCSVWriter(out io.Writer) (*csvWriter, error) {
	w := &csvWriter{out: csv.NewWriter(out), fields: columnFields()}
	w.row = Columns()
	return w, w.out.Write(w.row)
}

// Columns returns the names of all columns.
func Columns() []string {
	fields := columnFields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Tag.Get("json")
	}
	return names
}

func columnFields() []reflect.StructField {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.ExportedRecord]()) {
		if !f.Anonymous {
			fields = append(fields, f)
		}
	}
	return fields
}

func (w *csvWriter) Write(columns wire.ExportedColumns, report *dmarcd.Report) error {
	record := reflect.ValueOf(wire.NewExportedRecord(columns, report))
	for i, f := range w.fields {
		w.row[i] = NoFormula(csvText(record.FieldByIndex(f.Index).Interface()))
	}
	return w.out.Write(w.row)
}

func (w *csvWriter) Close() error {
	w.out.Flush()
	return w.out.Error()
}

// csvText returns a value as text: items of lists are separated by "; ", their parts by blanks.
func csvText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case []wire.AggregateReason:
		return joined(v, func(r wire.AggregateReason) []string { return []string{r.Type, r.Comment} })
	case []wire.DKIMResult:
		return joined(v, func(r wire.DKIMResult) []string { return []string{r.Result, r.Domain, r.Selector, r.HumanResult} })
	case []wire.SPFResult:
		return joined(v, func(r wire.SPFResult) []string { return []string{r.Result, r.Domain, r.Scope, r.HumanResult} })
	}
	return fmt.Sprint(value)
}

func joined[T any](list []T, parts func(T) []string) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = strings.Join(strings.Fields(strings.Join(parts(item), " ")), " ")
	}
	return strings.Join(items, "; ")
}

// NoFormula puts ' before a text that a spreadsheet would evaluate as a formula.
func NoFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
