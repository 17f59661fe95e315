// Package bench measures the overhead of a hub over a plain relay that uses the same libraries.
//
// Hubs, relays and agents run as processes of their own (process.go). rows.go defines what is
// measured, load.go has the sides take turns, measure.go aggregates the results. [RunAgent],
// [RunRelay] and Crowd run in the processes.
package bench
