// Package senders identifies the sender of mail by its address: the network and the country
// from files (Atlas), the service from catalogue.toml (Catalogue), and the host name from DNS
// (Names).
//
// Lookups for a page never wait: an Atlas and a Catalogue are in memory, and Names returns what
// it knows and resolves the rest later. Package networks builds the files.
package senders
