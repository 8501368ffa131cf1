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

// The names under which FindFiles looks for databases.
const (
	NetworksFile  = "networks.mmdb"
	CountriesFile = "countries.mmdb"
)

// NetworksType is the type that the databases have which are made by the command in
// the folder networks.
const NetworksType = "dmarcd-Networks"

// Files are the paths of the databases of an Atlas. An empty path stands for none;
// one file may be both.
type Files struct {
	Networks, Countries string
}

// FindFiles returns the databases that lie in the folders, each in the first folder
// that has one.
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

// Network is an autonomous system. The zero value is an unknown one.
type Network struct {
	Number uint32
	Name   string
}

// Origin is where an address belongs to. The zero value is unknown.
type Origin struct {
	Network Network
	// Country is a code of ISO 3166-1 in upper case, "" if unknown.
	Country string
}

// Atlas finds the network and the country of an address. The zero value knows none.
// It is safe for concurrent use.
type Atlas struct {
	networks, countries *database
	// networksAt and countriesAt are what was read at places in the databases: to
	// read it takes longer than to find where it stands, and many addresses lead to
	// the same place.
	networksAt, countriesAt sync.Map
	first                   func(netip.Addr) (Origin, bool)
}

// Preferring returns an atlas with the same databases that asks locate first.
func (a *Atlas) Preferring(locate func(netip.Addr) (Origin, bool)) *Atlas {
	return &Atlas{networks: a.networks, countries: a.countries, first: locate}
}

// database is a database that was read into memory: a file that is mapped instead
// would end the process when a newer one is copied over it.
type database struct {
	reader *maxminddb.Reader
	about  Database
}

// Database is what a database says of itself.
type Database struct {
	Path string
	Type string
	// Built is when the database was made.
	Built time.Time
}

// OpenAtlas reads the databases. They are in the MaxMind DB format, with networks as
// in GeoLite2-ASN, and countries as in GeoLite2-Country or as a plain country_code.
// A file that is named and is not there is an error.
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

// Databases returns the databases that are asked, each once.
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

// Locate returns where an address belongs to. What the databases do not tell, or do
// not tell in a form that is known, is left empty.
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

// readOnce returns what read makes of an entry of a database, or made of it before.
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

// isCountry reports whether a code is two letters in upper case.
func isCountry(code string) bool {
	return len(code) == 2 && 'A' <= code[0] && code[0] <= 'Z' && 'A' <= code[1] && code[1] <= 'Z'
}
