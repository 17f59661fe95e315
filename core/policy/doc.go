// Package policy decides which principal may give which command and ask which agent, and how
// long a chain of tasks may be.
//
// It decides before anything is sent, so that a refusal is an ordinary Fault with a reason.
package policy
