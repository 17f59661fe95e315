// Package wire is the codec of the Agent Client Protocol that editors speak with coding agents
// (agentclientprotocol.com, version 1): the types of all methods in both directions, with the
// members that JSON-RPC leaves to them. Envelopes are those of package jsonrpc.
//
// [Read] decodes params or a result from the index of the message, so that no text is read
// twice. [ReadUpdate] reads session/update without reflection, because agents send one for
// each piece of an answer. What the hub has no words for stays: an unknown kind of update, an
// unknown member, an option of a permission. [Update.Rest] and [Update.Whole] give it to a peer
// of the same dialect, [Restore] puts it back.
//
// The types in types.go are generated from the schema of the protocol: see tools/editortypes. What a
// value needs beyond the types of its members is in the method check of its type.
package wire

//go:generate go run ../../../tools/editortypes ../../../schemas/editor/schema.json types.go
