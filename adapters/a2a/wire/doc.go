// Package wire is the codec of A2A 1.0 (specification/a2a.proto of a2aproject/A2A): its
// objects, requests, cards and errors as JSON, for both bindings and both roles. It keeps no
// state and opens no connection.
//
// The objects of a conversation ([Message], [Task], [StreamResponse] and what they contain)
// are read from a [strictjson.Value] and written by tables of their members, because every chunk
// of an answer is one. Members that they do not know are kept in Unknown and written again. What is
// read once per call or less ([TaskRequest], [Card] and others) is plain structs.
//
// JSON is ProtoJSON as section 5 of the specification has it: camelCase, enums by name, bytes
// as base64, null as absent, except that null is a value for the data of a part.
package wire
