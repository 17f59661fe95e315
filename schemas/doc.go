// Package schemas holds the JSON Schemas of every JSON dialect, embedded in the
// program, and checks messages against them.
//
// There is one file for each type of message, in parallax/ and acp/, with the
// parts that several share in common/ beside them, and the samples of the
// specifications in samples/. The files follow the samples: what a sample leaves
// out is optional, fields that no sample shows are allowed, and null counts as
// absent wherever something is optional. What the specifications do not have (the
// hub's extensions) says so in its description.
//
// [Parallax] and [ACP] find the schema of a message by its type, and
// [Schema.Check] holds a message against it:
//
//	schema := schemas.Parallax("task_result")
//	if schema == nil {
//		// a type of message that nobody knows
//	}
//	if err := schema.Check(message); err != nil {
//		// payload.taskId: missing; send the id of the task
//	}
//
// The descriptions in the files are part of the program: they are what an error
// tells the peer to send, so each is a phrase that can follow "send".
//
// A schema is compiled when it is first used. The compiler of the JSON Schema
// library proves that the file is a schema and resolves its references; the few
// keywords that describe messages are then turned into a check of a message that
// package strictjson has read: it runs for every frame, and reads no text again. A
// schema with other keywords is left to the library. A test holds both to the
// same verdict.
package schemas
