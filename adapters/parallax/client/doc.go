// Package client is the agent's end of the Parallax protocol: [Work] registers an agent
// with a hub and answers tasks with a [core.Handler], and [Agent.Ask] asks other agents
// with the extension task_request. It opens no socket.
package client
