package wire

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// ToolsOf returns the tools of a manifest.
func ToolsOf(m *pb.PackManifest) []tool.Definition {
	var tools []tool.Definition
	for _, t := range m.GetTools() {
		tools = append(tools, tool.Definition{
			Name: t.GetName(), Description: t.GetDescription(), InputSchema: json.RawMessage(t.GetInputSchemaJson()),
			Timeout: time.Duration(t.GetTimeoutSeconds()) * time.Second, Requires: t.GetRequiredCapabilities(),
		})
	}
	return tools
}

// DefinitionOf returns the message that describes a tool to an agent.
func DefinitionOf(t tool.Definition) *pb.ToolDefinition {
	return &pb.ToolDefinition{
		Name: t.Name, Description: t.Description, InputSchemaJson: string(t.InputSchema),
		RequiredCapabilities: t.Requires, TimeoutSeconds: int32(t.Timeout.Seconds()),
	}
}

// outputSeparator separates the fault from the output of the call in the error of a tool.
const outputSeparator = "\n\n"

// ToolFailure returns the error text of a failed call: the fault and, below an empty
// line, the output of the call, if any. A language model reads on, and a program finds
// the JSON.
func ToolFailure(r *tool.Result) string {
	switch {
	case r.Pack != "":
		return packFailure(r.Fault)
	case r.Fault.Code == core.CodeUnsupported && strings.HasPrefix(r.Fault.Message, TextToolNotFound):
		return TextToolNotFound
	case len(r.Output) > 0:
		return FaultText(r.Fault) + outputSeparator + string(r.Output)
	}
	return FaultText(r.Fault)
}

// packFailure returns the error text of a pack's tool. What the pack itself answered
// passes unchanged.
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

// ToolFailureOf is the inverse of [ToolFailure]. JSON without a task id belongs to the
// message of the fault.
func ToolFailureOf(text string) (*core.Fault, json.RawMessage) {
	if i := strings.LastIndex(text, outputSeparator); i >= 0 {
		output := json.RawMessage(text[i+len(outputSeparator):])
		var about struct {
			TaskID core.TaskID `json:"task_id"`
		}
		if json.Unmarshal(output, &about) == nil && about.TaskID != "" {
			return FaultOf(text[:i]), output
		}
	}
	return FaultOf(text), nil
}
