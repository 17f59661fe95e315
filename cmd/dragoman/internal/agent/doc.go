// Package agent makes an agent of any command: [Handler] answers a request by running it,
// and [Stay] keeps the agent on the hub, joining again when the connection is lost.
package agent
