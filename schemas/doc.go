// Package schemas holds the JSON Schemas of every JSON dialect, and checks messages against
// them. The program embeds those of Parallax and ACP; the others are for tests.
//
// There is one file for each type of message in parallax/, acp/, native/, a2a/
// and pi-rpc/, with shared parts in common/ and the samples of the specifications in samples/. The files follow the samples:
// what a sample omits is optional, fields that no sample has are allowed, and null counts as
// absent for everything optional. The description of an extension of the hub says that it is
// one.
//
// [Parallax], [ACP], [Native], [Editor], [A2A] and [PiRPC] return the schema of a type of message, and
// [Schema.Check] checks a message against it:
//
//	schema := schemas.Parallax("task_result")
//	if schema == nil {
//		// an unknown type of message
//	}
//	if err := schema.Check(message); err != nil {
//		// payload.taskId: missing; send the id of the task
//	}
//
// The schema of the editor's protocol is the one that its project publishes, in one file.
//
// The descriptions in the other files are part of the program: error messages use them for what
// the peer should send, so each is a phrase that can follow "send".
//
// A schema is compiled when it is first used. The JSON Schema library checks the file and
// resolves its references. The few keywords that messages need then become a check on the
// [strictjson.Value] of a message, which runs for every frame and reads no text again. For a
// schema with other keywords the library does the check. A test compares both.
package schemas
