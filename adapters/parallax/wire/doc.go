// Package wire is the codec of the Parallax agent protocol: JSON messages, their
// payloads, what these mean as requests and events of the hub, and their signatures. It
// has no state.
//
// [Decode] reads a frame strictly and checks it against the schema of its type,
// [ReadPayload] its payload. Errors say what to change. What a frame says beyond its
// meaning is kept ([Message.Foreign]) and told to a peer of the same dialect ([Restore]).
package wire
