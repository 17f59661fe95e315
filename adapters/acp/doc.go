// Package acp is the hub's end of the ACP message types: a peer may ask every agent of
// the hub, and be asked by every requester.
//
// A session is the state of one peer: its identity, the requests that it opened and the
// tasks that it is assigned. The same session serves all carriers: [Serve] runs it over a
// connection of whole messages (WebSocket, lines of JSON), [HTTP] over POST and
// server-sent events. The sessions of one hub share [Peers]. The package opens no socket.
//
// The codec is the package wire. Between two ACP peers an envelope passes unchanged,
// unknown fields included: the hub rewrites only from, to and ref. Progress, our extension
// for streamed answers, is sent only to a peer that declared it.
package acp
