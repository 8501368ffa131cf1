// Package senders says who stands behind the address that a mail came from: its
// network and country from databases on disk (Atlas), the service it belongs to
// from the file catalogue.toml (Catalogue), and the name of the host from the DNS
// (Names).
//
// Nothing here asks anybody while a page is being made: an Atlas and a Catalogue
// live in memory, and Names answers with what it knows and finds out the rest
// later. Where the databases come from is told in the folder networks; what is
// counted for which address is left to others.
package senders
