// Package export writes records of aggregate reports as Parquet, NDJSON or CSV, everything that a
// team has as a ZIP file, and sends messages to syslog servers (RFC 5424). The columns of records are
// those of wire.ExportedRecord; which records and in which order is up to the caller.
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

// Writer writes rows to an output. The output is complete only after Close, which does not
// close it.
type Writer interface {
	// Write adds a row, a wire.ExportedRecord in JSON.
	Write(row []byte) error
	Close() error
}

// Format is a file format, by its name on the command line.
type Format string

// The supported formats.
const (
	Parquet Format = "parquet"
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
)

// Formats returns the supported formats.
func Formats() []Format { return []Format{Parquet, NDJSON, CSV} }

// NewWriter returns a Writer to out. It returns an error if the format is not supported.
func NewWriter(format Format, out io.Writer) (Writer, error) {
	switch format {
	case Parquet:
		return newParquetWriter(out), nil
	case NDJSON:
		return &jsonWriter{bufio.NewWriter(out)}, nil
	case CSV:
		return newCSVWriter(out)
	}
	return nil, fmt.Errorf("unknown format %q: use %s, %s or %s", format, Parquet, NDJSON, CSV)
}

type jsonWriter struct{ out *bufio.Writer }

// Write leaves the row as it is: it may have members that this version does not know.
func (w *jsonWriter) Write(row []byte) error {
	_, _ = w.out.Write(row) // the writer returns its error again
	return w.out.WriteByte('\n')
}

func (w *jsonWriter) Close() error { return w.out.Flush() }

// rowsPerGroup is the size of a Parquet row group, which the writer holds in memory.
const rowsPerGroup = 50_000

// parquetRow is a wire.ExportedRecord whose times are Parquet dates and timestamps.
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
		parquet.Compression(&zstd.Codec{}), parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.CreatedBy("dmarcd", "", ""))}
}

func (w *parquetWriter) Write(line []byte) error {
	var row wire.ExportedRecord
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	var times [3]time.Time
	for i, text := range []string{row.Begin, row.End, row.ReceivedAt} {
		var err error
		if times[i], err = time.Parse(time.RFC3339, text); err != nil {
			return err
		}
		times[i] = times[i].UTC()
	}
	w.row[0] = parquetRow{row.ExportedColumns, int32(dmarcd.DayOf(times[0])), times[0], times[1], times[2]}
	_, err := w.out.Write(w.row[:])
	return err
}

func (w *parquetWriter) Close() error { return w.out.Close() }

type csvWriter struct {
	out    *csv.Writer
	fields []reflect.StructField
	row    []string // reused by each Write
}

func newCSVWriter(out io.Writer) (*csvWriter, error) {
	w := &csvWriter{out: csv.NewWriter(out)}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[wire.ExportedRecord]()) {
		if !f.Anonymous {
			w.fields = append(w.fields, f)
			w.row = append(w.row, f.Tag.Get("json"))
		}
	}
	return w, w.out.Write(w.row)
}

func (w *csvWriter) Write(line []byte) error {
	var row wire.ExportedRecord
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	record := reflect.ValueOf(row)
	for i, f := range w.fields {
		w.row[i] = wire.EscapeFormula(csvText(record.FieldByIndex(f.Index).Interface()))
	}
	return w.out.Write(w.row)
}

func (w *csvWriter) Close() error {
	w.out.Flush()
	return w.out.Error()
}

// csvText formats the value of a column. The items of a list are separated by "; ", their
// parts by spaces.
func csvText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case []wire.AggregateReason:
		return join(v, func(r wire.AggregateReason) []wire.Text { return []wire.Text{r.Type, r.Comment} })
	case []wire.DKIMResult:
		return join(v, func(r wire.DKIMResult) []wire.Text { return []wire.Text{r.Result, r.Domain, r.Selector, r.HumanResult} })
	case []wire.SPFResult:
		return join(v, func(r wire.SPFResult) []wire.Text { return []wire.Text{r.Result, r.Domain, r.Scope, r.HumanResult} })
	}
	return fmt.Sprint(value)
}

// join joins the parts of each item, without empty parts and line breaks, and then the items.
func join[T any](list []T, parts func(T) []wire.Text) string {
	items := make([]string, len(list))
	for i, item := range list {
		var words []string
		for _, part := range parts(item) {
			words = append(words, strings.Fields(string(part))...)
		}
		items[i] = strings.Join(words, " ")
	}
	return strings.Join(items, "; ")
}
