package app

import (
	"net"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/outbound"
	reportprobe "github.com/dmarcd/dmarcd/internal/probe"
)

// newSelfTests returns what sends synthetic reports. listen returns the address of the SMTP
// listener, "" if there is none.
func newSelfTests(cfg config.Config, r dns.Resolver, listen func() string) *reportprobe.Sender {
	local := func() string {
		host, port, err := net.SplitHostPort(listen())
		if err != nil {
			return ""
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "localhost"
		}
		return net.JoinHostPort(host, port)
	}
	// The report domain is that of the operator, whose servers may have private addresses.
	return &reportprobe.Sender{Resolver: r, Dial: outbound.Trusted(cfg.DNS).DialContext, Local: local, Now: time.Now}
}
