// Package rolling upgrades an installation on PostgreSQL under load, one replica after the
// other, from an old binary to a new one: a request must get no other answer than documented,
// and no acknowledged report may be missing. The test stands in for the load balancer.
// scripts/test-rolling.sh builds the binaries.
package rolling
