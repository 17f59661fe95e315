// Package wire is the codec of the native dialect: the events and commands of the hub as JSON,
// one frame an object. docs/dialects/native.md specifies the frames.
//
// [Decode] reads a frame of a peer, [DecodeHub] one of the hub. The Append functions and
// [Encode] write them. Nothing here keeps state.
//
// Members of an event or a request that this version does not know, and events of unknown
// kinds, are kept as [core.Foreign] of the dialect. [AppendEvent] writes them back where they
// were, so that a native peer gets them untouched (promise P11).
package wire
