// Package render turns the events of a task into the frames that pi clients read, and a
// conversation into a page of HTML.
//
// A [View] is a [core.Sink] that renders one task. It puts the pieces of an answer
// together as a draft, decides which updates of the draft are worth their bytes
// (budget.go), and collects the messages that have ended:
//
//	var out render.Frames
//	var v render.View
//	v.Begin(render.Task{Envelope: envelope, ID: id, ...}, &out, render.SnapshotsAll)
//	for _, e := range batch.Events {
//		_ = e.Deliver(&v) // a View returns no error
//	}
//	v.Flush()
//	out.Send(ctx, link)
//
// Every reader of a task has a View of its own, at its own pace. The messages do not
// depend on the reader: views of one task all end with the same ones. A View without
// Frames makes the messages alone; a session keeps its record with one.
//
// [Frames] is the memory of one connection: frames are written one behind the other into
// buffers, and a buffer is used again once the connection has sent what is in it.
// [Envelope] returns the frames of a session that belong to no task: what begins and
// ends a run, notices, retries.
//
// Nothing here waits, except [Frames.Send] for the connection, and nothing is locked: a
// View and its Frames belong to the one goroutine that reads the task.
package render
