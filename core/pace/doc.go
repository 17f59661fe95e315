// Package pace spaces out what a peer makes this side do again: list, ask, connect, resume, start.
//
//	again := pace.Pace{First: 250 * time.Millisecond, Most: 2 * time.Second}
//	for range changes {
//		if err := again.Wait(ctx); err != nil {
//			return err
//		}
//		list()
//	}
//
// A peer whose answer leads to another request could keep the hub busy without end. With a [Pace]
// the first request comes at once, and those that follow it in a row after pauses that grow.
package pace
