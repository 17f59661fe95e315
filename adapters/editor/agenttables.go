package editor

import "github.com/dragoman-hub/dragoman/core"

// agentSays and agentIsTold declare how every kind of event is translated between the hub and the
// agents of this dialect that it runs: see package client.
var (
	agentSays = core.Table{
		core.KindOpened:            internal("the hub sends it"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          {How: core.Synthesised, With: "the first update, request or answer after session/prompt"},
		core.KindSessionStarted:    native("the sessionId of session/new, session/resume or session/load, in every task"),
		core.KindSessionLost:       {How: core.Synthesised, With: "session/resume or session/load that the agent refuses or does not have; a turn that it does not end"},
		core.KindThinking:          native("agent_thought_chunk; notice and compaction_update as text"),
		core.KindText:              native("agent_message_chunk; a resource_link as Markdown"),
		core.KindToolCall:          native("tool_call; the first tool_call_update of a call"),
		core.KindToolState:         native("tool_call_update"),
		core.KindToolResult:        native("tool_call or tool_call_update of status completed or failed: its content, else rawOutput"),
		core.KindApprovalRequested: native("session/request_permission"),
		core.KindApprovalDecided:   internal("agents do not decide"),
		core.KindQuestionAsked:     internal("the hub says it; elicitation/create asks"),
		core.KindQuestionAnswered:  internal("the hub says it; the answer to elicitation/create"),
		core.KindInjected:          internal("agents do not inject"),
		core.KindInjectionAnswered: native("the outcome of _session/steering"),
		core.KindFile:              native("image, audio and resource blocks of a chunk or of a tool's content; a diff of a completed tool call"),
		core.KindUsage:             native("usage, or _meta.quota, of the result of session/prompt"),
		core.KindRetrying:          internal("the hub sends it"),
		core.KindCancelRequested:   internal("agents end their turns themselves"),
		core.KindForeign:           native("every other update, such as plan, available_commands_update, current_mode_update and usage_update"),
		core.KindDone:              native("the result of session/prompt; stopReason max_tokens and max_turn_requests as truncated"),
		core.KindFailed:            native("the error of session/prompt; stopReason refusal; the end of the process"),
		core.KindCancelled:         native("stopReason cancelled; an error after session/cancel"),
	}
	agentIsTold = core.Table{
		core.KindOpened:            internal("part of assigned"),
		core.KindAssigned:          native("session/prompt; data, context, domain, max_tokens and the history of a lost session are folded into its text"),
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   native("the answer to session/request_permission: the option of its kind"),
		core.KindQuestionAsked:     internal("the agent asks, or its tool"),
		core.KindQuestionAnswered:  internal("the answer to elicitation/create, or the result of the tool"),
		core.KindInjected:          native("_session/steering, where the agent announces it"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              fromAgent,
		core.KindUsage:             fromAgent,
		core.KindRetrying:          internal("the next agent gets the task by assigned"),
		core.KindCancelRequested:   native("session/cancel; open permission requests are answered as cancelled"),
		core.KindForeign:           fromAgent,
		core.KindDone:              folded("session/cancel, if the agent still works"),
		core.KindFailed:            folded("session/cancel, if the agent still works"),
		core.KindCancelled:         folded("session/cancel, if the agent still works"),
	}
)
