// Package client is an agent's end of the Coven protocol: [Work] registers an agent with a
// hub and answers requests with a [core.Handler]. In a handler, [CallTool] calls a tool of
// the hub.
package client
