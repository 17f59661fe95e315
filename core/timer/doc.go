// Package timer calls functions after a time, and lets a wait group wait for the calls.
//
//	var running sync.WaitGroup
//	late := timer.After(&running, time.Minute, giveUp)
//	late.Stop()
//	running.Wait() // returns once giveUp does not run and will not
package timer
