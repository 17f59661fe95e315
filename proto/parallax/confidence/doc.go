// Package confidence is the generated wire format of the service that a Parallax agent
// serves when it is a gRPC server itself: its messages, and the client and the server
// of its one service.
//
// Nothing here knows the hub. The dialect in adapters/parallax calls it; no other
// package may import this one but cmd, which connects to the agents.
//
// confidence.proto beside this file is the source; `make gen` writes the rest.
package confidence
