// Package acp speaks the envelopes of the ACP message types: a peer of it may ask
// every agent of the hub, and be asked by everybody.
//
// An [Envelope] says who it is from and for, of which [Kind] it is and, in ref,
// what it answers. Twelve kinds come in pairs (query and response, delegate and
// ack with a later result, ping and pong, discover and capabilities, cancel and
// ack), notify stands alone, and error answers anything. Two more are optional:
// hello, which later versions of the draft added, and progress, our extension for
// streamed answers, sent only to a peer that declared it.
//
// The package is in two halves. The codec turns envelopes into payloads and those
// into requests and events, and back; it is pure. The session is the state of one
// peer: who it is, what it asked, what it works on. There is one kind of session
// for all carriers: [Serve] holds it over a connection of whole messages
// (WebSocket, lines of JSON), [HTTP] over POST and server-sent events. [Peers] is
// what the sessions of one hub share.
//
// Between two ACP peers an envelope passes as it came, unknown fields and all: the
// hub rewrites from, to and ref, and nothing else.
//
// [Work] is the agent's end of the dialect, [Client] the requester's. Neither they
// nor the rest of the package open a socket.
package acp
