// Package registry is the generated wire format of the Parallax registry, where agents
// that are gRPC servers themselves make themselves known: its messages, and the client
// and the server of its one service.
//
// Nothing here knows the hub. The dialect in adapters/parallax serves it; no other
// package may import this one but cmd, which mounts the service.
//
// registry.proto beside this file is the source; `make gen` writes the rest.
package registry
