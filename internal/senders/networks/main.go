// Command networks writes the database of networks that is shipped with dmarcd, in the
// MaxMind DB format, from the CSV files of the npm package @ip-location-db/asn.
// scripts/need-networks.sh downloads the package.
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/dmarcd/dmarcd/internal/senders"
	"github.com/dmarcd/dmarcd/internal/senders/mmdb"
)

// description is part of the database. The licences of the data require that it names the
// sources.
const description = "Networks of the Internet. Made from data of DB-IP (https://db-ip.com), " +
	"Route Views (https://www.routeviews.org) and the NRO (https://www.nro.net), licensed under CC BY 4.0."

func main() {
	out := flag.String("o", "", "the file to write")
	built := flag.String("built", "", "the day that the data is from, as YYYY-MM-DD")
	flag.Parse()
	if err := run(*out, *built, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "networks:", err)
		os.Exit(1)
	}
}

// run writes the database from the CSV files. It replaces an existing file atomically.
func run(out, built string, files []string) error {
	day, err := time.Parse(time.DateOnly, built)
	if err != nil {
		return fmt.Errorf("read the day: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(out), ".networks-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // it is renamed unless something failed
	options := mmdb.Options{Type: senders.NetworksType, Description: description, Built: day}
	buffered := bufio.NewWriter(file)
	err = mmdb.Write(buffered, options, ranges(files))
	if err := errors.Join(err, buffered.Flush(), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), out)
}

// ranges yields the rows of the files up to the first error.
func ranges(files []string) iter.Seq2[mmdb.Range, error] {
	return func(yield func(mmdb.Range, error) bool) {
		for _, path := range files {
			if err := read(path, func(r mmdb.Range) bool { return yield(r, nil) }); err != nil {
				yield(mmdb.Range{}, fmt.Errorf("read %s: %w", path, err))
				return
			}
		}
	}
}

// read calls use with every row of a file, until it returns false.
func read(path string, use func(mmdb.Range) bool) error {
	file, err := os.Open(path) //nolint:gosec // named on the command line
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read-only
	rows := csv.NewReader(bufio.NewReader(file))
	rows.FieldsPerRecord = 4
	rows.ReuseRecord = true
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := parse(row)
		if err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		if !use(r) {
			return nil
		}
	}
}

// parse reads a row: first address, last address, number, name.
func parse(row []string) (mmdb.Range, error) {
	first, err1 := netip.ParseAddr(row[0])
	last, err2 := netip.ParseAddr(row[1])
	number, err3 := strconv.ParseUint(row[2], 10, 32)
	if err := errors.Join(err1, err2, err3); err != nil {
		return mmdb.Range{}, err
	}
	return mmdb.Range{First: first, Last: last, Number: uint32(number), Name: row[3]}, nil
}
