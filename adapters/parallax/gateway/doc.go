// Package gateway is the codec between the messages of parallax.gateway.AgentGateway, which
// published Parallax agents speak over gRPC, and the frames of package wire.
//
// [Decode] turns a message of an agent into the frame that an agent on a WebSocket would
// send, [Encode] a frame of the hub into a message. One session therefore serves both.
package gateway
