// Package mmdb writes databases of networks in the MaxMind DB format, with the
// fields that package senders reads. Where the ranges come from is left to the
// caller.
package mmdb

import (
	"fmt"
	"io"
	"iter"
	"net/netip"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Range is a range of addresses, both ends included.
type Range struct {
	First, Last netip.Addr
	// Number and Name are those of the autonomous system; 0 and "" if unknown.
	Number uint32
	Name   string
	// Country is an ISO 3166-1 code, "" if unknown.
	Country string
}

// Options describe a database.
type Options struct {
	// Type names the kind of database; see senders.NetworksType.
	Type string
	// Description is in English.
	Description string
	// Built is the time of the data.
	Built time.Time
}

// Write writes a database of the ranges. Where ranges overlap, the later one wins. It stops at
// the first error of ranges.
func Write(w io.Writer, options Options, ranges iter.Seq2[Range, error]) error {
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType: options.Type,
		Description:  map[string]string{"en": options.Description},
		Languages:    []string{"en"},
		BuildEpoch:   options.Built.Unix(),
		// Networks are announced in reserved ranges too, and the demo uses such ranges.
		IncludeReservedNetworks: true,
		// Some networks are where the format has aliases of IPv4.
		DisableIPv4Aliasing: true,
	})
	if err != nil {
		return fmt.Errorf("make database: %w", err)
	}
	for r, err := range ranges {
		if err != nil {
			return err
		}
		if err := tree.InsertRange(r.First.AsSlice(), r.Last.AsSlice(), r.value()); err != nil {
			return fmt.Errorf("insert range from %s to %s: %w", r.First, r.Last, err)
		}
	}
	if _, err := tree.WriteTo(w); err != nil {
		return fmt.Errorf("write database: %w", err)
	}
	return nil
}

// value returns the entry of a range, with the field names of GeoLite2-ASN and of the country
// databases of ip-location-db.
func (r Range) value() mmdbtype.Map {
	value := mmdbtype.Map{}
	if r.Number != 0 {
		value["autonomous_system_number"] = mmdbtype.Uint32(r.Number)
	}
	if r.Name != "" {
		value["autonomous_system_organization"] = mmdbtype.String(r.Name)
	}
	if r.Country != "" {
		value["country_code"] = mmdbtype.String(r.Country)
	}
	return value
}
