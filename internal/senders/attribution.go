package senders

// Attribution names the owner of data that is used, with the link that the licence of
// the data asks for.
type Attribution struct {
	Text, URL string
}

// Attributions returns what every page has to show that shows networks: the data of
// the database that comes with the program is licensed under CC BY 4.0, and DB-IP
// wants a link. It is empty where the operator configured another database, whose
// licence is the operator's to keep.
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
