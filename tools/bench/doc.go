// Bench measures the overhead of a hub over a plain relay that uses the same libraries:
//
//	go run ./tools/bench -rows single,parallel -base-binary ./dragoman-before
//
// Hubs, relays and agents run as processes of their own (process.go). rows.go defines what is measured, load.go has
// the sides take turns, measure.go aggregates the results and table.go prints them.
package main
