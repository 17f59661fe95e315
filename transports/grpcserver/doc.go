// Package grpcserver carries whole protobuf messages over gRPC.
//
// A [Server] is a gRPC server with limits, keepalive, health and reflection
// already in place; services are registered with it as generated code describes
// them. [Accept] turns the bidirectional stream of a handler into a
// [github.com/dragoman-hub/dragoman/core/link.Conn] of the stream's own message
// types, and [Open] does the same at the client's end of a connection made by
// [Dial]. The package knows no service and no dialect.
//
// A handler is a few lines, where ctx is not the stream's but that of the program:
//
//	conn, err := grpcserver.Accept(server, stream) // headers are on their way
//	if err != nil { return err }
//	return grpcserver.Status(run(ctx, conn))
//
// # How a stream is closed
//
// A gRPC handler that wants to end a stream returns a status; until it does, its RecvMsg
// waits for the client, and nothing in the documented interface wakes it. A loop that reads
// would have to outlive its handler. Close avoids that: it writes the status through the
// transport's stream, as grpc-go itself does when RecvMsg or SendMsg fails. That cancels the
// stream, wakes both loops and tells the client the reason at once; the loops are joined,
// the handler returns, and grpc-go ignores the status it returns because one is written
// already. The method that writes the status is exported by grpc-go's stream but is not part
// of its documented interface: Accept refuses a stream without it, so that an upgrade which
// removes it fails every test of this package.
//
// A client stream is simpler: Close half-closes it, gives the server a second to
// end it properly, and cancels it.
//
// # What is bounded
//
// Nothing of a call is read before [Options].Admit has admitted it. Connections without an
// admitted call have a small share of their own and a bounded time, so that those who cannot
// authenticate lock nobody out. Check of the health service needs no credentials; its requests
// are not read beyond 256 bytes.
//
// What a peer may have in flight is its flow-control window, which is fixed
// (256 KiB) and does not grow with the bandwidth as it does by default in grpc-go.
// At most 64 KiB and one message of a stream wait to be written. A stream that is closed
// because its peer reads nothing keeps that much until the peer reads again or its
// connection ends; it holds no goroutine, but it counts among the 128 of the connection.
package grpcserver
