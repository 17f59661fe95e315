// Package wire is the codec of the Parallax agent protocol: JSON messages to requests and
// events of the hub, and back. It keeps no state.
//
// [Decode] reads a frame strictly and checks it against the schema of its type;
// [ReadPayload] decodes its payload. Errors say what to change. Members that the hub does
// not know are kept ([Message.Foreign]) and passed to a peer of the same dialect
// ([Restore]). [Sign] and [Verify] are the signatures of messages.
package wire
