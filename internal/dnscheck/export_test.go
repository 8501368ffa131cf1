package dnscheck

// Catalogue returns all types of findings, grouped by part.
func Catalogue() []Entry { return catalogue() }

// TXTRecord returns a TXT record as it stands in a zone file.
func TXTRecord(name, text string) string { return txtRecord(name, text).String() }

// Mapped reports whether the tables of this package contain a kind of problem of a
// protocol package.
func Mapped(protocol, kind string) bool {
	if protocol == "dmarc.Miss" {
		_, known := missFlaws[kind]
		return known
	}
	_, known := map[string]map[string]mapping{
		"dmarc": dmarcFindings, "spf": spfFindings, "dkim": dkimFindings, "mtasts": mtastsFindings,
		"tlsrpt": tlsrptFindings, "bimi": bimiFindings, "dane": daneFindings,
	}[protocol][kind]
	return known
}
