// Package wire is the codec of the ACP message types: envelopes, their payloads, and their
// translation to requests and events of the hub. It has no state.
//
// An [Envelope] has a sender, a recipient, a [Kind] and, in ref, the id of the envelope that
// it answers. Twelve kinds come in pairs (query and response, delegate and ack with a later
// result, ping and pong, discover and capabilities, cancel and ack), notify has no answer,
// and error answers anything. Two more are optional: hello, which later versions of the
// draft added, and progress, our extension for streamed answers.
//
// [Decode] and [Envelope.Check] read strictly and say what to change. [Readdress] passes
// an envelope on between two ACP peers with every other byte unchanged.
package wire
