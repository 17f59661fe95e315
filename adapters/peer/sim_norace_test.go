//go:build !race

package peer_test

// How many schedules the ordinary test runs, and how many it runs twice.
const (
	ordinarySchedules = 2000
	replays           = 15
)
