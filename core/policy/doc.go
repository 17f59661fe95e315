// Package policy decides who may do what: who may ask whom, who may read a task, and how
// long a chain of tasks may be.
//
// It decides before anything is sent, so that a refusal is an ordinary Fault with a reason.
package policy
