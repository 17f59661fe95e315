// Package coven is the generated wire format of the Coven agent protocol: the
// messages of coven.proto and the client and server of coven.CovenControl.
//
// Nothing here knows the hub. The dialect in adapters/coven turns these
// messages into events of the core and back; no other package may import this
// one but cmd, which mounts the service.
//
// The .proto beside this file is the source; `make gen` writes the rest.
package coven
