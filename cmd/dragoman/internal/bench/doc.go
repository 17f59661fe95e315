// Package bench measures what a hub costs, beside a plain relay that is made of the same
// libraries and nothing else.
//
// Hubs, relays and agents are processes of their own, which process.go starts; the rows
// say what is asked of them, load.go has the sides take turns, measure.go adds up what came
// of it. [RunAgent], [RunRelay] and Crowd are what the processes do.
package bench
