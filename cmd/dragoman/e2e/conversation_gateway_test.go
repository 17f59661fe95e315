package e2e

import (
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/proto/parallax/gateway"
)

// openGateway opens the connection of a gateway agent. It returns the agent's end and the function
// that serves the other. All come from one address.
func (p *player) openGateway(headers map[string]string) (peerEnd, func() link.Reason) {
	server, client := coretest.Pipe[*gateway.AgentToControlPlane, *gateway.ControlPlaneToAgent](0)
	opts := parallax.GatewayOptions{Address: "192.0.2.1", Refusals: &p.refused}
	opts.Principal = principalIn(headers)
	end := protoEnd[*gateway.ControlPlaneToAgent, *gateway.AgentToControlPlane]{client, func() *gateway.AgentToControlPlane { return new(gateway.AgentToControlPlane) }}
	return end, func() link.Reason { return parallax.ServeGateway(p.ctx, p.hub, server, &opts) }
}
