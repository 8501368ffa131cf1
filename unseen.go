package dmarcd

// Unseen returns the parts that could not be looked at, by the word that begins
// the ids of their findings.
func (f Facts) Unseen() []string {
	const inconclusive = "inconclusive"
	var unseen []string
	for _, part := range []struct{ name, status string }{
		{"dmarc", f.DMARC.Status},
		{"spf", f.SPF.Status},
		{"mx", f.MX.Status},
		{"mta-sts", f.MTASTS.Status},
		{"mta-sts", f.MTASTS.Fetch},
		{"tls-rpt", f.TLSRPT.Status},
		{"bimi", f.BIMI.Status},
		{"dane", f.DANE.Status},
		{"dnssec", f.DNSSEC.Status},
	} {
		if part.status == inconclusive {
			unseen = append(unseen, part.name)
		}
	}
	for _, key := range f.DKIM.Keys {
		if key.Status == inconclusive {
			return append(unseen, "dkim")
		}
	}
	return unseen
}
