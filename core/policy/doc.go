// Package policy says who may do what: who may ask whom, who may read a task, and
// where a chain of tasks stops.
//
// It decides on values alone, before anything is sent to anybody, so that a
// refusal is an ordinary, explained Fault.
package policy
