// Package timer calls functions after a time, and lets a wait group wait for the calls.
//
//	var running sync.WaitGroup
//	late := timer.After(&running, time.Minute, giveUp)
//	late.Stop()
//	running.Wait() // returns once giveUp does not run and will not
//
// A [Pace] spaces out what a peer makes this side do again: list, ask, connect, resume, start. A peer whose answer
// leads to another request could keep the hub busy without end. With a Pace the first request comes at once, and
// those that follow it in a row after pauses that grow.
//
//	again := timer.Pace{First: 250 * time.Millisecond, Most: 2 * time.Second}
//	for range changes {
//		if err := again.Wait(ctx); err != nil {
//			return err
//		}
//		list()
//	}
package timer
