package schemas

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of the hub's HTTP interface, as JSON text.
// It is read only.
//
//go:embed openapi.json
var OpenAPI []byte
