// Package webhooks verifies deliveries with the reference library of Standard Webhooks for
// JavaScript, the npm package standardwebhooks, run by Node.js. The one for Go is used by the
// tests of package webhook. scripts/need-node.sh installs what it needs.
package webhooks
