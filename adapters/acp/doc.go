// Package acp is the hub's end of the ACP message types: a peer may ask every agent of
// the hub, and be asked by every requester.
//
// A session is the state of one peer: who it is, what it asked, what it works on. There
// is one kind of session for all carriers: [Serve] holds it over a connection of whole
// messages (WebSocket, lines of JSON), [HTTP] over POST and server-sent events. [Peers]
// is what the sessions of one hub share. The package opens no socket.
//
// The codec is the package wire. Between two ACP peers an envelope passes unchanged,
// with unknown fields: the hub rewrites from, to and ref, and nothing else. Progress,
// our extension for streamed answers, is sent only to a peer that declared it.
package acp
