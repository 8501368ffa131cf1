package senders

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// The names of databases that FindFiles searches for.
const (
	NetworksFile  = "networks.mmdb"
	CountriesFile = "countries.mmdb"
)

// NetworksType is the type of databases written by the command in the folder networks.
const NetworksType = "dmarcd-Networks"

// Files are the paths of the databases of an Atlas, "" for none. Both may be the same file.
type Files struct {
	Networks, Countries string
}

// FindFiles searches the folders for databases. The first folder that has one wins.
func FindFiles(folders ...string) Files {
	return Files{Networks: find(NetworksFile, folders), Countries: find(CountriesFile, folders)}
}

func find(name string, folders []string) string {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// Network is an autonomous system. The zero value is unknown.
type Network struct {
	Number uint32
	Name   string
}

// Origin is the network and country of an address. The zero value is unknown.
type Origin struct {
	Network Network
	// Country is an ISO 3166-1 code in upper case, "" if unknown.
	Country string
}

// Atlas finds the network and the country of an address. The zero value finds nothing. It is
// safe for concurrent use.
type Atlas struct {
	networks, countries *database
	// networksAt and countriesAt cache decoded entries by their offset in the database:
	// decoding takes longer than finding the offset, and many addresses have the same entry.
	networksAt, countriesAt sync.Map
	first                   func(netip.Addr) (Origin, bool)
}

// Preferring returns an atlas with the same databases that calls locate first.
func (a *Atlas) Preferring(locate func(netip.Addr) (Origin, bool)) *Atlas {
	return &Atlas{networks: a.networks, countries: a.countries, first: locate}
}

// database is a database in memory. A memory-mapped file would crash the process if a newer one
// is copied over it.
type database struct {
	reader *maxminddb.Reader
	about  Database
}

// Database is the metadata of a database.
type Database struct {
	Path string
	Type string
	// Built is the build time of the database.
	Built time.Time
}

// OpenAtlas reads the databases. They are in the MaxMind DB format, with networks as in
// GeoLite2-ASN, and countries as in GeoLite2-Country or as a plain country_code. A missing file
// is an error.
func OpenAtlas(files Files) (*Atlas, error) {
	networks, errNetworks := open(files.Networks)
	countries, errCountries := networks, error(nil)
	if files.Countries != files.Networks {
		countries, errCountries = open(files.Countries)
	}
	if err := errors.Join(errNetworks, errCountries); err != nil {
		return nil, err
	}
	return &Atlas{networks: networks, countries: countries}, nil
}

func open(path string) (*database, error) {
	if path == "" {
		return nil, nil
	}
	content, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("read database of networks: %w", err)
	}
	reader, err := maxminddb.OpenBytes(content)
	if err != nil {
		return nil, fmt.Errorf("read database of networks: %w", &fs.PathError{Op: "parse", Path: path, Err: err})
	}
	about := Database{Path: path, Type: reader.Metadata.DatabaseType, Built: reader.Metadata.BuildTime().UTC()}
	return &database{reader: reader, about: about}, nil
}

// Databases returns the open databases, each once.
func (a *Atlas) Databases() []Database {
	var all []Database
	if a.networks != nil {
		all = append(all, a.networks.about)
	}
	if a.countries != nil && a.countries != a.networks {
		all = append(all, a.countries.about)
	}
	return all
}

// Locate returns the origin of an address. Fields that the databases lack, or have in an
// unknown form, are empty.
func (a *Atlas) Locate(addr netip.Addr) Origin {
	addr = addr.Unmap()
	if !addr.IsValid() {
		return Origin{}
	}
	if a.first != nil {
		if origin, ok := a.first(addr); ok {
			return origin
		}
	}
	return Origin{Network: a.network(addr), Country: a.country(addr)}
}

func (a *Atlas) network(addr netip.Addr) Network {
	if a.networks == nil {
		return Network{}
	}
	return readOnce(&a.networksAt, a.networks.reader.Lookup(addr), func(entry maxminddb.Result) Network {
		var found struct {
			Number uint32 `maxminddb:"autonomous_system_number"`
			Name   string `maxminddb:"autonomous_system_organization"`
		}
		if err := entry.Decode(&found); err != nil {
			return Network{} // another kind of database, or a damaged entry
		}
		return Network(found)
	})
}

func (a *Atlas) country(addr netip.Addr) string {
	if a.countries == nil {
		return ""
	}
	return readOnce(&a.countriesAt, a.countries.reader.Lookup(addr), func(entry maxminddb.Result) string {
		for _, path := range [][]any{{"country_code"}, {"country", "iso_code"}} {
			var code string
			if err := entry.DecodePath(&code, path...); err == nil && isCountry(code) {
				return code
			}
		}
		return ""
	})
}

// readOnce decodes an entry of a database with read, or returns the cached result.
func readOnce[T any](known *sync.Map, entry maxminddb.Result, read func(maxminddb.Result) T) T {
	var none T
	if !entry.Found() {
		return none
	}
	if found, ok := known.Load(entry.Offset()); ok {
		return found.(T) //nolint:forcetypeassert // no other is stored
	}
	found := read(entry)
	known.Store(entry.Offset(), found)
	return found
}

// isCountry reports whether a code consists of two upper-case letters.
func isCountry(code string) bool {
	return len(code) == 2 && 'A' <= code[0] && code[0] <= 'Z' && 'A' <= code[1] && code[1] <= 'Z'
}

// Attribution names the owner of data, with the link that its licence requires.
type Attribution struct {
	Text, URL string
}

// Attributions returns what every page with networks must show: the database that comes with
// the program is licensed under CC BY 4.0, and DB-IP requires a link. It is empty if the
// operator configured another database, and is responsible for its licence.
func (a *Atlas) Attributions() []Attribution {
	if a.networks == nil || a.networks.about.Type != NetworksType {
		return nil
	}
	return []Attribution{
		{Text: "IP Geolocation by DB-IP", URL: "https://db-ip.com"},
		{Text: "Route Views", URL: "https://www.routeviews.org"},
		{Text: "NRO", URL: "https://www.nro.net"},
	}
}
