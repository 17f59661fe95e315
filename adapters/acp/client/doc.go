// Package client is the agent's end of ACP, for programs that connect to a hub: [Work] answers queries and delegates
// with a [core.Handler]. It opens no socket.
package client
