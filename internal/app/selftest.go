package app

import (
	"net"
	"time"

	"github.com/dmarcd/dmarcd/dns"
	"github.com/dmarcd/dmarcd/internal/config"
	"github.com/dmarcd/dmarcd/internal/outbound"
	reportprobe "github.com/dmarcd/dmarcd/internal/probe"
	"github.com/dmarcd/dmarcd/internal/service"
)

// withSelfTest adds to options what sends synthetic reports. listen returns the address of
// the SMTP listener, "" if there is none.
func withSelfTest(options service.Options, cfg config.Config, r dns.Resolver, listen func() string) service.Options {
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
	sender := &reportprobe.Sender{Resolver: r, Dial: outbound.Trusted(cfg.DNS).DialContext, Local: local, Now: time.Now}
	options.SendSelfTest = sender.Send
	return options
}
