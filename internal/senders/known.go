package senders

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/dmarcd/dmarcd/dns"
)

//go:embed catalogue.toml
var knownText string

// Known returns the senders that the program knows by itself. The file names what the
// services document or show in every mail they send; an autonomous system is listed only
// where the service alone sends mail from it.
func Known() []Sender {
	all, err := ParseSenders(knownText)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return all
}

// maxFileBytes bounds the file of an operator.
const maxFileBytes = 8 << 20

// ReadSenders reads a file of an operator in the form of catalogue.toml.
func ReadSenders(path string) ([]Sender, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read senders: %w", err)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("read senders: %s has more than %d bytes", path, maxFileBytes)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator chose it
	if err != nil {
		return nil, fmt.Errorf("read senders: %w", err)
	}
	all, err := ParseSenders(string(text))
	if err != nil {
		return nil, fmt.Errorf("read senders: %s: %w", path, err)
	}
	return all, nil
}

// entry is a sender in a file.
type entry struct {
	Key        string   `toml:"key"`
	Name       string   `toml:"name"`
	Kind       Kind     `toml:"kind"`
	Category   Category `toml:"category"`
	Networks   []uint32 `toml:"networks"`
	Hosts      []string `toml:"hosts"`
	Except     []string `toml:"except"`
	Domains    []string `toml:"domains"`
	AlignsSPF  bool     `toml:"aligns_spf"`
	AlignsDKIM bool     `toml:"aligns_dkim"`
	Setup      string   `toml:"setup"`
}

// ParseSenders reads senders in the form of catalogue.toml. An unknown field, a key that
// is there twice and a sender that nothing is recognized by are errors.
func ParseSenders(text string) ([]Sender, error) {
	var file struct {
		Senders []entry `toml:"sender"`
	}
	about, err := toml.Decode(text, &file)
	if err != nil {
		return nil, err
	}
	if unknown := about.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("unknown field %s", unknown[0])
	}
	all, keys := make([]Sender, len(file.Senders)), make(map[string]bool)
	for i, e := range file.Senders {
		if all[i], err = e.sender(); err != nil {
			return nil, fmt.Errorf("sender %q: %w", e.Key, err)
		}
		if keys[e.Key] {
			return nil, fmt.Errorf("sender %q: the key is there twice", e.Key)
		}
		keys[e.Key] = true
	}
	return all, nil
}

var keyForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// sender checks an entry and returns what it describes.
func (e entry) sender() (Sender, error) {
	switch e.Kind {
	case Forwarder:
		e.Category = Forwarding
	case List:
		e.Category = MailingList
	}
	switch {
	case !keyForm.MatchString(e.Key):
		return Sender{}, errors.New("the key must be lower-case letters, digits and hyphens, at most 64")
	case strings.TrimSpace(e.Name) == "":
		return Sender{}, errors.New("the name is missing")
	case !slices.Contains(Kinds(), e.Kind):
		return Sender{}, fmt.Errorf("the kind must be one of %q", Kinds())
	case !slices.Contains(Categories(), e.Category):
		return Sender{}, fmt.Errorf("the category must be one of %q", Categories())
	case len(e.Networks)+len(e.Hosts)+len(e.Domains) == 0:
		return Sender{}, errors.New("it needs hosts, domains or networks")
	case slices.Contains(e.Networks, 0):
		return Sender{}, errors.New("there is no network 0")
	case strings.TrimSpace(e.Setup) == "":
		return Sender{}, errors.New("setup is missing")
	}
	for _, name := range slices.Concat(e.Hosts, e.Except, e.Domains) {
		if !dns.IsHostname(name) || name != strings.ToLower(name) || !strings.Contains(name, ".") {
			return Sender{}, fmt.Errorf("%q is not a domain name in lower case", name)
		}
	}
	return Sender{
		Key: e.Key, Name: e.Name, Kind: e.Kind, Category: e.Category, Networks: e.Networks, Hosts: e.Hosts, Except: e.Except, Domains: e.Domains,
		AlignsSPF: e.AlignsSPF, AlignsDKIM: e.AlignsDKIM, Setup: e.Setup,
	}, nil
}
