// Package agent turns a command into an agent: [Handler] answers a request by running it, and
// [Stay] keeps the agent on the hub and reconnects when the connection is lost.
package agent
