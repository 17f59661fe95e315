// Package gateway is the generated wire format of the Parallax gateway, the gRPC
// stream that published Parallax agents speak: its messages, and the client and the
// server of its one service.
//
// Nothing here knows the hub. The dialect in adapters/parallax turns these messages
// into those of its WebSocket and back; no other package may import this one but
// cmd, which mounts the service.
//
// gateway.proto beside this file is the source; `make gen` writes the rest.
package gateway
