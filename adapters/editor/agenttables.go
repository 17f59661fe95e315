package editor

import "github.com/dragoman-hub/dragoman/core"

// FromAgent and ToAgent declare how every kind of event is translated between the hub and the
// agents of this dialect that it runs: see package client.
var (
	FromAgent = core.Table{
		core.KindOpened:            {How: core.Internal, With: "the hub sends it"},
		core.KindAssigned:          {How: core.Internal, With: "the hub sends it"},
		core.KindAccepted:          {How: core.Synthesised, With: "the first update, request or answer after session/prompt"},
		core.KindSessionStarted:    {How: core.Native, With: "the sessionId of session/new, session/resume or session/load, in every task"},
		core.KindSessionLost:       {How: core.Synthesised, With: "session/resume or session/load that the agent refuses or does not have; a turn that it does not end"},
		core.KindThinking:          {How: core.Native, With: "agent_thought_chunk"},
		core.KindText:              {How: core.Native, With: "agent_message_chunk; a resource_link as Markdown"},
		core.KindToolCall:          {How: core.Native, With: "tool_call; the first tool_call_update of a call"},
		core.KindToolState:         {How: core.Native, With: "tool_call_update"},
		core.KindToolResult:        {How: core.Native, With: "tool_call or tool_call_update of status completed or failed: its content, else rawOutput"},
		core.KindApprovalRequested: {How: core.Native, With: "session/request_permission"},
		core.KindApprovalDecided:   {How: core.Internal, With: "agents do not decide"},
		core.KindInjected:          {How: core.Internal, With: "agents do not inject"},
		core.KindInjectionAnswered: {How: core.Synthesised, With: "an injection, which is refused"},
		core.KindFile:              {How: core.Native, With: "image, audio and resource blocks of a chunk or of a tool's content; a diff of a completed tool call"},
		core.KindUsage:             {How: core.Native, With: "usage, or _meta.quota, of the result of session/prompt"},
		core.KindRetrying:          {How: core.Internal, With: "the hub sends it"},
		core.KindCancelRequested:   {How: core.Internal, With: "agents end their turns themselves"},
		core.KindForeign:           {How: core.Native, With: "every other update, such as plan, available_commands_update, current_mode_update and usage_update"},
		core.KindDone:              {How: core.Native, With: "the result of session/prompt; stopReason max_tokens and max_turn_requests as truncated"},
		core.KindFailed:            {How: core.Native, With: "the error of session/prompt; stopReason refusal; the end of the process"},
		core.KindCancelled:         {How: core.Native, With: "stopReason cancelled; an error after session/cancel"},
	}
	ToAgent = core.Table{
		core.KindOpened:            {How: core.Internal, With: "part of assigned"},
		core.KindAssigned:          {How: core.Native, With: "session/prompt; data, context, domain, max_tokens and the history of a lost session are folded into its text"},
		core.KindAccepted:          agentSaysIt,
		core.KindSessionStarted:    agentSaysIt,
		core.KindSessionLost:       agentSaysIt,
		core.KindThinking:          agentSaysIt,
		core.KindText:              agentSaysIt,
		core.KindToolCall:          agentSaysIt,
		core.KindToolState:         agentSaysIt,
		core.KindToolResult:        agentSaysIt,
		core.KindApprovalRequested: agentSaysIt,
		core.KindApprovalDecided:   {How: core.Native, With: "the answer to session/request_permission: the option of its kind"},
		core.KindInjected:          {How: core.Refused, With: "the protocol has no message for it"},
		core.KindInjectionAnswered: agentSaysIt,
		core.KindFile:              agentSaysIt,
		core.KindUsage:             agentSaysIt,
		core.KindRetrying:          {How: core.Internal, With: "the next agent gets the task by assigned"},
		core.KindCancelRequested:   {How: core.Native, With: "session/cancel; open permission requests are answered as cancelled"},
		core.KindForeign:           agentSaysIt,
		core.KindDone:              {How: core.Folded, With: "session/cancel, if the agent still works"},
		core.KindFailed:            {How: core.Folded, With: "session/cancel, if the agent still works"},
		core.KindCancelled:         {How: core.Folded, With: "session/cancel, if the agent still works"},
	}
)

var agentSaysIt = core.Disposition{How: core.Internal, With: "the agent sends it"}
