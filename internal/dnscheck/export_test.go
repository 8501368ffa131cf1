package dnscheck

// TXTRecord returns a TXT record as it stands in a zone file.
func TXTRecord(name, text string) string { return txtRecord(name, text) }

// Tells reports whether a table of this package knows how problems of a kind are
// told, by the name of the protocol's package.
func Tells(protocol, kind string) bool {
	if protocol == "dmarc.Miss" {
		_, known := missFlaws[kind]
		return known
	}
	_, known := map[string]map[string]telling{
		"dmarc": dmarcTellings, "spf": spfTellings, "dkim": dkimTellings, "mtasts": mtastsTellings,
		"tlsrpt": tlsrptTellings, "bimi": bimiTellings, "dane": daneTellings,
	}[protocol][kind]
	return known
}

// Scale returns the grades with the most points that each is given for.
func Scale() (names []string, points []int) {
	for _, g := range grades {
		names, points = append(names, g.grade), append(points, g.points)
	}
	return names, points
}
