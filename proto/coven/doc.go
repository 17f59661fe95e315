// Package coven is the generated wire format of the Coven agent protocol: the
// messages, and the clients and servers of its services, one .proto each.
//
// Nothing here knows the hub. The dialect in adapters/coven turns these
// messages into events of the core and back; no other package may import this
// one but cmd, which mounts the service.
//
// The .proto files beside this one are the source; `make gen` writes the rest.
package coven
