//go:build !linux

package main

// lowestPriority does nothing: threads have no priorities here.
func lowestPriority() {}
