//go:build race

package peer_test

// The race detector makes schedules about ten times slower, and runs goroutines in any order.
const (
	ordinarySchedules = 100
	replays           = 0
)
