// Package demo has the agents of the demo: one of each dialect, and a client of pi, each of
// which can be made to ask every other.
package demo
