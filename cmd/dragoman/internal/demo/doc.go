// Package demo has the agents of the demo: one of each dialect, and clients of ACP and pi. Each
// can ask every other.
package demo
