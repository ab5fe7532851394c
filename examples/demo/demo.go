// Package demo has the tools that `taskbridge dev` offers when it is given no catalog.
package demo

import _ "embed"

// CatalogName is how errors name the demo catalog.
const CatalogName = "examples/demo/catalog.yaml"

// Catalog is the demo catalog.
//
//go:embed catalog.yaml
var Catalog []byte
