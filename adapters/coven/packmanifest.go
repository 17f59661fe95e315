package coven

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/tool"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// The texts that existing packs, and the agents that call them, know.
const (
	textPackIDRequired = "pack_id is required"
	textPackGone       = "pack disconnected"
	textPackSlow       = "context deadline exceeded"
	textEmptyResult    = "Empty result from pack"
	prefixInvalid      = "invalid input: "
	prefixCollision    = "tool collision: "
)

// toolsOf are the tools of a manifest.
func toolsOf(m *wire.PackManifest) []tool.Definition {
	var tools []tool.Definition
	for _, t := range m.GetTools() {
		tools = append(tools, tool.Definition{
			Name: t.GetName(), Description: t.GetDescription(), InputSchema: json.RawMessage(t.GetInputSchemaJson()),
			Timeout: time.Duration(t.GetTimeoutSeconds()) * time.Second, Requires: t.GetRequiredCapabilities(),
		})
	}
	return tools
}

// definitionOf is how an agent is told of a tool.
func definitionOf(t tool.Definition) *wire.ToolDefinition {
	return &wire.ToolDefinition{
		Name: t.Name, Description: t.Description, InputSchemaJson: string(t.InputSchema),
		RequiredCapabilities: t.Requires, TimeoutSeconds: int32(t.Timeout.Seconds()),
	}
}

// packStatus is the reason to end the stream of a pack that may not register.
func packStatus(f *core.Fault) *link.Reason {
	if strings.HasPrefix(f.Message, "tool name collision: ") {
		return status(codes.AlreadyExists, prefixCollision+f.Message)
	}
	return statusOf(f)
}

// packFailure is the error of a pack's tool. What the pack said itself passes as it
// is.
func packFailure(f *core.Fault) string {
	switch f.Code {
	case core.CodeTimeout:
		return textPackSlow
	case core.CodeUnreachable:
		return textPackGone
	case core.CodeInvalid, core.CodeInternal:
		return f.Message
	}
	return FaultText(f)
}
