// Package oapi requires what clients that oapi-codegen generates import. The test compiles one
// with the versions of this module.
package oapi

import (
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
)
