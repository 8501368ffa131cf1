package wire

import "github.com/dmarcd/dmarcd"

// RecordTarget is the server to which the records of a domain are published. Its key is never shown.
type RecordTarget struct {
	Domain    string `json:"domain"`
	Kind      string `json:"kind"` // rfc2136 or powerdns
	Server    string `json:"server"`
	Zone      string `json:"zone"`
	CreatedAt string `json:"created_at"`
}

// NewRecordTarget returns the shape of a target.
func NewRecordTarget(domain string, t dmarcd.PublishTarget) RecordTarget {
	return RecordTarget{Domain: domain, Kind: string(t.Kind), Server: t.Server, Zone: t.Zone, CreatedAt: Time(t.CreatedAt)}
}
