package foreign

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/dmarcd/dmarcd"
	"github.com/dmarcd/dmarcd/aggregate"
)

// maxColumns limits the columns of a table and the members of a JSON object, maxTables the tables
// of a dump.
const (
	maxColumns = 200
	maxTables  = 10_000
)

// tables says how the tables of a tool are read. A table is recognized by a column that no
// other has, because its name may have a prefix.
type tables struct {
	domainColumn, reportColumn, recordColumn string

	// report returns the id of a report, its head and, if stored, its original. Its domain
	// may be the id of a domain.
	report func(r row) (id string, head aggregate.Report, original []byte, err error)
	// record returns the id of the report of a record, and the record.
	record func(r row) (id string, record aggregate.Record, err error)
}

// value is a value of a row.
type value struct {
	text []byte
	null bool
}

// row is a row of a table.
type row struct {
	columns map[string]int
	values  []value
}

// text returns the text of a column, "" if it is missing or NULL.
func (r row) text(column string) string { return string(r.bytes(column)) }

func (r row) bytes(column string) []byte {
	if i, ok := r.columns[column]; ok && i < len(r.values) && !r.values[i].null {
		return r.values[i].text
	}
	return nil
}

// count returns the count of a record.
func (r row) count(column string) (int64, error) {
	n, err := strconv.ParseInt(r.text(column), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %.40q, not a number of messages", column, r.text(column))
	}
	return n, nil
}

// times sets the period of a report.
func (r row) times(m *aggregate.Metadata, begin, end string) (err error) {
	if m.Begin, err = parseTime(r.text(begin)); err != nil {
		return fmt.Errorf("%s: %w", begin, err)
	}
	if r.text(end) == "" {
		m.End = m.Begin
		return nil
	}
	if m.End, err = parseTime(r.text(end)); err != nil {
		return fmt.Errorf("%s: %w", end, err)
	}
	return nil
}

// list decodes a column that holds a JSON array; other content is no list. Other items are
// left out: PHP writes an object without members as [].
func list[T any](r row, column string) (items []T) {
	var all []json.RawMessage
	if text := r.bytes(column); bytes.Count(text, []byte(",")) <= maxItems {
		_ = json.Unmarshal(text, &all) // it is no list then
	}
	for _, one := range all {
		var item T
		if json.Unmarshal(one, &item) == nil {
			items = append(items, item)
		}
	}
	return items
}

// address sets the source of a record to an address of 4 or 16 bytes.
func setAddress(r *aggregate.Record, packed []byte) error {
	addr, ok := netip.AddrFromSlice(packed)
	if !ok {
		return fmt.Errorf("the address has %d bytes, not 4 or 16", len(packed))
	}
	r.Addr = addr.Unmap()
	r.Source = r.Addr.String()
	return nil
}

// dump is a dump that is read.
type dump struct {
	tables

	lex     *lexer
	out     output
	columns map[string][]string // by table
	domains map[string]string   // names by id
	reports map[string]*pending
	order   []string
	// found counts the tables that were recognized.
	found int
}

// readDump reads a dump, and yields its reports at the end: records may be in any order.
func readDump(in *bufio.Reader, out output, t tables) error {
	d := &dump{
		tables: t, lex: &lexer{in: in, line: 1}, out: out,
		columns: make(map[string][]string), domains: make(map[string]string), reports: make(map[string]*pending),
	}
	for {
		more, err := d.statement()
		var wrong *LineError
		if errors.As(err, &wrong) {
			// Where the next statement begins is unknown.
			return errors.Join(d.out.invalid(wrong.Line, "%s", wrong.Reason), d.end())
		}
		if err != nil {
			return err
		}
		if !more {
			return d.end()
		}
	}
}

// statement reads one statement.
func (d *dump) statement() (more bool, err error) {
	first, err := d.lex.next()
	if err != nil || first.kind == tokenEnd {
		return false, err
	}
	switch {
	case first.is(';'):
		return true, nil
	case first.keyword("CREATE"):
		err = d.create()
	case first.keyword("INSERT"), first.keyword("REPLACE"):
		err = d.insert()
	default:
		err = d.skip()
	}
	return err == nil, err
}

// skip skips to the end of a statement.
func (d *dump) skip() error {
	for {
		t, err := d.lex.next()
		if err != nil || t.is(';') || t.kind == tokenEnd {
			return err
		}
	}
}

// create reads the names of the columns of CREATE TABLE name (column type, ...).
func (d *dump) create() error {
	t, err := d.lex.next()
	if err != nil || !t.keyword("TABLE") {
		return errors.Join(err, d.skipAfter(t))
	}
	name, t, err := d.table()
	if err != nil || !t.is('(') {
		return errors.Join(err, d.skipAfter(t))
	}
	var columns []string
	for depth, begins := 1, true; depth > 0; {
		if t, err = d.lex.next(); err != nil {
			return err
		}
		switch {
		case t.kind == tokenEnd:
			return &LineError{t.line, "the file ends within CREATE TABLE"}
		case begins && (t.kind == tokenName || t.kind == tokenWord && !isKey(string(t.text))):
			if len(columns) >= maxColumns || len(t.text) > maxName {
				return &LineError{t.line, "the table has too many columns, or the name of one is too long"}
			}
			columns = append(columns, strings.ToLower(string(t.text)))
		case t.is('('):
			depth++
		case t.is(')'):
			depth--
		}
		begins = depth == 1 && t.is(',')
	}
	if len(d.columns) >= maxTables || len(name) > maxName {
		return &LineError{t.line, "the dump has too many tables, or the name of one is too long"}
	}
	d.columns[name] = columns
	return d.skip()
}

// isKey reports whether a word begins a key or constraint, not a column.
func isKey(word string) bool {
	switch strings.ToUpper(word) {
	case "PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "FULLTEXT", "SPATIAL", "CHECK":
		return true
	}
	return false
}

// skipAfter skips a statement whose last token was t.
func (d *dump) skipAfter(t token) error {
	if t.is(';') || t.kind == tokenEnd {
		return nil
	}
	return d.skip()
}

// table returns the name of a table, without that of its database, and the token after it.
func (d *dump) table() (name string, after token, err error) {
	for {
		t, err := d.lex.next()
		if err != nil {
			return "", t, err
		}
		switch {
		case t.keyword("VALUES"), t.keyword("VALUE"):
			return name, t, nil
		case t.keyword("IF"), t.keyword("NOT"), t.keyword("EXISTS"), t.keyword("INTO"), t.keyword("IGNORE"), t.keyword("."):
		case t.kind == tokenName, t.kind == tokenWord:
			name = string(t.text)
		default:
			return name, t, nil
		}
	}
}

// insert reads INSERT INTO name [(column, ...)] VALUES (value, ...), ...;
func (d *dump) insert() error {
	name, t, err := d.table()
	if err != nil {
		return err
	}
	columns := d.columns[name]
	if t.is('(') {
		if columns, err = d.names(); err != nil {
			return err
		}
		if t, err = d.lex.next(); err != nil {
			return err
		}
	}
	if !t.keyword("VALUES") && !t.keyword("VALUE") {
		return d.skipAfter(t)
	}
	indexes := make(map[string]int, len(columns))
	for i, column := range columns {
		indexes[column] = i
	}
	use := d.user(indexes)
	if use == nil {
		return d.skip()
	}
	for {
		if t, err = d.lex.next(); err != nil {
			return err
		}
		switch {
		case t.is(','):
		case t.is('('):
			values, err := d.values()
			if err != nil {
				return err
			}
			if err := use(row{indexes, values}, t.line); err != nil {
				return err
			}
		default:
			return d.skipAfter(t)
		}
	}
}

// names reads the names of columns to the closing parenthesis.
func (d *dump) names() ([]string, error) {
	var names []string
	for {
		t, err := d.lex.next()
		switch {
		case err != nil:
			return nil, err
		case (t.kind == tokenName || t.kind == tokenWord) && len(names) < maxColumns && len(t.text) <= maxName:
			names = append(names, strings.ToLower(string(t.text)))
		case t.is(','):
		case t.is(')'):
			return names, nil
		default:
			return nil, &LineError{t.line, "the names of the columns are malformed"}
		}
	}
}

// values reads the values of a row to the closing parenthesis.
func (d *dump) values() ([]value, error) {
	values := []value{{null: true}}
	size := 0
	for {
		t, err := d.lex.next()
		if err != nil {
			return nil, err
		}
		last := &values[len(values)-1]
		switch {
		case t.is(')'):
			return values, nil
		case t.is(','):
			if len(values) >= maxColumns {
				return nil, &LineError{t.line, "the row has too many values"}
			}
			values = append(values, value{null: true})
		case t.kind == tokenWord && len(t.text) > 0 && t.text[0] == '_': // a character set, before a string
		case t.keyword("NULL"):
		case t.kind == tokenWord, t.kind == tokenString:
			if size += len(t.text); size > maxValue {
				return nil, fmt.Errorf("%w: line %d: a row is longer than %d bytes", dmarcd.ErrLimit, t.line, maxValue)
			}
			*last = value{text: append([]byte(nil), t.text...)}
		default:
			return nil, &LineError{t.line, "the values of a row are malformed"}
		}
	}
}

// user returns what to do with the rows of a table, nil to skip them.
func (d *dump) user(columns map[string]int) func(r row, line int) error {
	has := func(column string) bool {
		_, ok := columns[column]
		return column != "" && ok
	}
	switch {
	case has(d.recordColumn):
		d.found++
		return d.addRecord
	case has(d.reportColumn):
		d.found++
		return d.addReport
	case has(d.domainColumn):
		return d.addDomain
	}
	return nil
}

func (d *dump) addDomain(r row, line int) error {
	id, name := r.text("id"), r.text(d.domainColumn)
	if len(id) > maxName || len(name) > maxName {
		return d.out.invalid(line, "a domain cannot be used: its id or name is longer than %d bytes", maxName)
	}
	if len(d.domains) >= maxReports {
		return fmt.Errorf("%w: the dump has more than %d domains; split it", dmarcd.ErrLimit, maxReports)
	}
	d.domains[id] = name
	return nil
}

func (d *dump) addReport(r row, line int) error {
	id, head, original, err := d.report(r)
	if err == nil && len(id) > maxName {
		err = errLongID
	}
	if err != nil {
		return d.out.invalid(line, "a report cannot be used: %s", err)
	}
	p, err := d.pending(id)
	if err != nil {
		return err
	}
	p.line = line
	if len(original) > 0 {
		if p.original, err = d.out.spill.write(original); err != nil {
			return err
		}
	}
	p.head, err = d.out.spill.add(head)
	return err
}

func (d *dump) addRecord(r row, line int) error {
	id, record, err := d.sizedRecord(r)
	if err != nil {
		return d.out.invalid(line, "a record cannot be used: %s", err)
	}
	p, err := d.pending(id)
	if err != nil {
		return err
	}
	if p.line == 0 {
		p.line = -line // unless the report follows
	}
	return d.out.spill.addRecord(p, record)
}

var errLongID = fmt.Errorf("its id is longer than %d bytes", maxName)

// sizedRecord is record for a row of a limited size.
func (d *dump) sizedRecord(r row) (id string, record aggregate.Record, err error) {
	size := 0
	for _, v := range r.values {
		size += len(v.text)
	}
	if size > maxRecord {
		return "", record, errLongRecord
	}
	if id, record, err = d.record(r); err == nil && len(id) > maxName {
		err = errLongID
	}
	return id, record, err
}

// pending returns a report by its id.
func (d *dump) pending(id string) (*pending, error) {
	p := d.reports[id]
	if p == nil {
		if len(d.order) >= maxReports {
			return nil, fmt.Errorf("%w: the dump has more than %d reports; split it", dmarcd.ErrLimit, maxReports)
		}
		p = &pending{}
		d.reports[id] = p
		d.order = append(d.order, id)
	}
	return p, nil
}

// end yields all reports.
func (d *dump) end() error {
	if d.found == 0 {
		return d.out.invalid(d.lex.line, "the file has no rows with the columns %s and %s; is it a dump of this tool, made with its table definitions?", d.reportColumn, d.recordColumn)
	}
	for _, id := range d.order {
		p := d.reports[id]
		var err error
		switch {
		case p.line < 0:
			err = d.out.invalid(-p.line, "a record belongs to report %s, which the dump does not have", id)
		case p.original.to > p.original.from:
			err = d.out.report(func(w io.Writer) error {
				in, err := d.out.spill.open(p.original)
				if err != nil {
					return err
				}
				_, err = io.Copy(w, in)
				return err
			})
		default:
			var head aggregate.Report
			if err = d.out.spill.get(p.head, &head); err != nil {
				return err
			}
			if name := d.domains[head.Policy.Domain]; name != "" {
				head.Policy.Domain = name
			}
			err = d.out.report(d.out.spill.aggregate(head, p.records))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
