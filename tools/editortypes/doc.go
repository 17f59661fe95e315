// Command editortypes writes the types of the editor's protocol from its JSON Schema, which is in
// schemas/editor as the protocol's project publishes it:
//
//	go generate ./adapters/editor/wire
//
// It writes the types that are used, and no others: see [types]. How a member of the schema becomes one
// of Go is in [schema.typeOf].
package main
