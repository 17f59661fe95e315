// Package render renders the events of a task as the frames that pi clients read, and a
// conversation as an HTML page.
//
// A [View] is a [core.Sink] that renders one task. It assembles the pieces of an answer in
// a draft, decides which updates of the draft are worth their bytes (budget.go), and
// collects the completed messages:
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
// Every reader of a task has its own View and its own pace. The messages do not depend on
// the reader: all views of one task end with the same ones. A View without Frames makes
// only the messages; a session uses one for its record.
//
// [Frames] is the frame memory of one connection: frames are written one after the other
// into buffers, and a buffer is reused once the connection has sent its frames. [Envelope]
// returns the frames of a session that belong to no task: the start and the end of a run,
// notices, retries.
//
// Only [Frames.Send] blocks, for the connection. The package has no locks: a View and its
// Frames belong to the goroutine that reads the task.
package render
