// Package cold is the format of old records: blocks of the rows of the table records, stored
// by column. A block is a Parquet file with one row group: numbers as differences, texts by
// dictionary, all compressed with zstd. Blocks are in the order of (report, share, n).
//
// A block is decompressed as a whole, so that its size is limited in both forms. Package store decides
// which records are in which block and who may read it, and compares the sum of a block before
// it is read: the reader expects blocks of this package, but returns an error for anything
// else.
package cold

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Record is a row of the table records without its team. The fields are columns.
type Record struct {
	Report      int64  `parquet:"report_id,delta"`
	Share       int32  `parquet:"share,delta"`
	N           int32  `parquet:"n,delta"`
	Count       int64  `parquet:"count,delta"`
	Source      string `parquet:"source,dict"`
	Disposition string `parquet:"disposition,dict"`
	DKIM        string `parquet:"dkim,dict"`
	SPF         string `parquet:"spf,dict"`
	Details     string `parquet:"details,dict"`
}

// Limits of a block.
const (
	// MaxRecords is the number of records of a full block.
	MaxRecords = 10_000
	// MaxText is the size of all texts of a full block, in bytes. The last record may exceed
	// it.
	MaxText = 16 << 20
	// MaxBytes limits a block that is read.
	MaxBytes = 64 << 20
)

// ErrDamaged is a block that cannot be read.
var ErrDamaged = errors.New("a block of old records is damaged; restore it from a backup, " +
	"or delete the reports that dmarcd doctor names and import them again")

// Writer collects the records of a block. The zero value is empty.
type Writer struct {
	records []Record
	text    int
}

// Add adds a record, which must come after those before it.
func (w *Writer) Add(r Record) {
	w.records = append(w.records, r)
	w.text += len(r.Source) + len(r.Disposition) + len(r.DKIM) + len(r.SPF) + len(r.Details)
}

// Full reports whether the block must be taken before the next record is added.
func (w *Writer) Full() bool { return len(w.records) >= MaxRecords || w.text >= MaxText }

// Records returns the records of the block until Take.
func (w *Writer) Records() []Record { return w.records }

// Take returns the block and empties the writer.
func (w *Writer) Take() ([]byte, error) {
	var b bytes.Buffer
	// Statistics and indexes are of no use where a block is read as a whole.
	config := []parquet.WriterOption{
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedBetterCompression}), parquet.CreatedBy("dmarcd", "", ""),
		parquet.DataPageStatistics(false),
	}
	for _, column := range Columns() {
		config = append(config, parquet.SkipPageBounds(column))
	}
	out := parquet.NewGenericWriter[Record](&b, config...)
	if _, err := out.Write(w.records); err != nil {
		return nil, fmt.Errorf("write a block of old records: %w", err)
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("write a block of old records: %w", err)
	}
	clear(w.records)
	w.records, w.text = w.records[:0], 0
	return b.Bytes(), nil
}

// Columns returns the names of the columns.
func Columns() []string {
	var names []string
	for _, column := range parquet.SchemaOf(Record{}).Columns() {
		names = append(names, column[0])
	}
	return names
}

// Checksum returns the SHA-256 of a block, which is verified before the block is read.
func Checksum(block []byte) [sha256.Size]byte { return sha256.Sum256(block) }

// ReadShares returns the records of some shares of reports of a block, in order. It calls wanted
// for each record and decodes the other columns of those that are wanted. It returns ErrDamaged
// for anything that is not a block.
func ReadShares(block []byte, wanted func(report int64, share int32) bool) ([]Record, error) {
	records, err := read(block, wanted)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return records, nil
}

// read is ReadShares without the kind of an error. A panic of the decoder is an error.
func read(block []byte, wanted func(report int64, share int32) bool) (records []Record, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("decoder: %v", cause)
		}
	}()
	if len(block) > MaxBytes {
		return nil, fmt.Errorf("%d bytes, more than %d", len(block), MaxBytes)
	}
	file, err := parquet.OpenFile(bytes.NewReader(block), int64(len(block)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	n := file.NumRows()
	if n < 0 || n > MaxRecords {
		return nil, fmt.Errorf("%d records, more than %d", n, MaxRecords)
	}
	if !parquet.EqualNodes(file.Schema(), parquet.SchemaOf(Record{})) {
		return nil, errors.New("other columns")
	}
	groups := file.RowGroups()
	if n == 0 && len(groups) == 0 {
		return nil, nil
	}
	if len(groups) != 1 {
		return nil, fmt.Errorf("%d row groups", len(groups))
	}
	columns := groups[0].ColumnChunks()
	part := part{total: int(n), rows: make([]int, n), records: make([]Record, n)}
	for i := range part.rows {
		part.rows[i] = i
	}
	for i, column := range columns {
		if i == keyColumns {
			if part.filter(wanted); len(part.rows) == 0 {
				break
			}
		}
		if err := part.read(i, column); err != nil {
			return nil, err
		}
	}
	return part.records, nil
}

// keyColumns are report_id and share, which decide whether a record is selected.
const keyColumns = 2

// part is the records of some rows of a block.
type part struct {
	total   int   // of the block
	rows    []int // increasing
	records []Record
}

// filter removes the records that are not wanted.
func (p *part) filter(wanted func(report int64, share int32) bool) {
	n := 0
	for i := range p.records {
		if wanted(p.records[i].Report, p.records[i].Share) {
			p.rows[n], p.records[n] = p.rows[i], p.records[i]
			n++
		}
	}
	if n < len(p.rows)/2 {
		p.records = append([]Record(nil), p.records[:n]...) // with less memory
	}
	p.rows, p.records = p.rows[:n], p.records[:n]
}

// read sets one field of the records. Reading by column is several times faster than by record,
// which allocates each text.
func (p *part) read(column int, chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }() // in memory
	for first, next := 0, 0; ; {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) && first == p.total {
			return nil
		}
		if err != nil {
			return err
		}
		size, end := int(page.NumValues()), next
		if size > p.total-first {
			return errors.New("a column has too many values")
		}
		for end < len(p.rows) && p.rows[end] < first+size {
			end++
		}
		err = set(p.records[next:end], p.rows[next:end], first, column, page)
		parquet.Release(page)
		if err != nil {
			return err
		}
		first, next = first+size, end
	}
}

// set sets the field of a column from a page that begins at the row first.
func set(records []Record, rows []int, first, column int, page parquet.Page) error {
	data := page.Data()
	switch column {
	case 0:
		values := data.Int64()
		for i, row := range rows {
			records[i].Report = values[row-first]
		}
		return nil
	case 1:
		values := data.Int32()
		for i, row := range rows {
			records[i].Share = values[row-first]
		}
		return nil
	case 2:
		values := data.Int32()
		for i, row := range rows {
			records[i].N = values[row-first]
		}
		return nil
	case 3:
		values := data.Int64()
		for i, row := range rows {
			records[i].Count = values[row-first]
		}
		return nil
	}
	dictionary := page.Dictionary()
	if dictionary == nil {
		return errors.New("a text is not in a dictionary")
	}
	values := data.Int32()
	texts := make([]string, dictionary.Len()) // equal texts share their memory
	for i, row := range rows {
		text := &texts[values[row-first]]
		if *text == "" {
			*text = string(dictionary.Index(values[row-first]).ByteArray())
		}
		r := &records[i]
		*[...]*string{&r.Source, &r.Disposition, &r.DKIM, &r.SPF, &r.Details}[column-4] = *text
	}
	return nil
}

// Size returns the approximate memory of records, in bytes.
func Size(records []Record) int {
	size := 0
	for i := range records {
		r := &records[i]
		size += int(unsafe.Sizeof(*r)) + len(r.Source) + len(r.Details)
	}
	return size
}
