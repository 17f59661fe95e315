package pi

import "github.com/dragoman-hub/dragoman/core"

const byAgent = "the agent says it"

// Translation says what becomes of every kind. A pi client asks and does not
// answer, so that the dialect takes no part as an agent.
var Translation = core.Translation{
	Dialect: Name,
	FromRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "prompt and follow_up, with images as attachments; steer where the agent takes no injection"},
		core.KindAssigned:          {How: core.Internal, With: "the hub says it"},
		core.KindAccepted:          {How: core.Internal, With: byAgent},
		core.KindSessionStarted:    {How: core.Internal, With: byAgent},
		core.KindSessionLost:       {How: core.Internal, With: byAgent},
		core.KindThinking:          {How: core.Internal, With: byAgent},
		core.KindText:              {How: core.Internal, With: byAgent},
		core.KindToolCall:          {How: core.Internal, With: byAgent},
		core.KindToolState:         {How: core.Internal, With: byAgent},
		core.KindToolResult:        {How: core.Internal, With: byAgent},
		core.KindApprovalRequested: {How: core.Internal, With: byAgent},
		core.KindApprovalDecided:   {How: core.Native, With: "extension_ui_response to a confirm; anything but a confirmation denies"},
		core.KindInjected:          {How: core.Native, With: "steer, when the agent takes injections"},
		core.KindInjectionAnswered: {How: core.Internal, With: byAgent},
		core.KindFile:              {How: core.Folded, With: "images of a prompt are attachments of the request"},
		core.KindUsage:             {How: core.Internal, With: byAgent},
		core.KindRetrying:          {How: core.Internal, With: "the hub says it"},
		core.KindCancelRequested:   {How: core.Native, With: "abort; delete_session of a running session"},
		core.KindForeign:           {How: core.Refused, With: "Validation failed: type: Unknown command type"},
		core.KindDone:              {How: core.Internal, With: byAgent},
		core.KindFailed:            {How: core.Internal, With: byAgent},
		core.KindCancelled:         {How: core.Internal, With: byAgent},
	},
	ToRequester: core.Table{
		core.KindOpened:            {How: core.Synthesised, With: "agent_start, turn_start and the user's message, made from the prompt"},
		core.KindAssigned:          {How: core.Folded, With: "provider and model of the assistant's message, model of the session"},
		core.KindAccepted:          {How: core.Internal, With: "that the run goes on was said by agent_start"},
		core.KindSessionStarted:    {How: core.Internal, With: "the agent's own session is no concern of the client"},
		core.KindSessionLost:       {How: core.Folded, With: "extension_ui_request notify, a warning"},
		core.KindThinking:          {How: core.Native, With: "message_update thinking_start, thinking_delta, thinking_end"},
		core.KindText:              {How: core.Native, With: "message_update text_start, text_delta, text_end"},
		core.KindToolCall:          {How: core.Native, With: "message_update toolcall_*, tool_execution_start"},
		core.KindToolState:         {How: core.Native, With: "tool_execution_update; pending is said by the call itself"},
		core.KindToolResult:        {How: core.Native, With: "tool_execution_end and a toolResult message"},
		core.KindApprovalRequested: {How: core.Native, With: "extension_ui_request confirm"},
		core.KindApprovalDecided:   {How: core.Folded, With: "extension_ui_request notify"},
		core.KindInjected:          {How: core.Native, With: "a user's message, where the agent acknowledged it"},
		core.KindInjectionAnswered: {How: core.Folded, With: "the place of the user's message; refused, it becomes the next turn"},
		core.KindFile:              {How: core.Folded, With: "a note in the text, with the file where it is text; else a custom message too"},
		core.KindUsage:             {How: core.Native, With: "usage of the assistant's message; thinking counts as output"},
		core.KindRetrying:          {How: core.Native, With: "auto_retry_start, auto_retry_end"},
		core.KindCancelRequested:   {How: core.Internal, With: "the end says that the run was aborted"},
		core.KindForeign:           {How: core.Folded, With: "an additional event foreign_frame, verbatim"},
		core.KindDone:              {How: core.Native, With: "message_end, turn_end, agent_end and the response; data is a block of text"},
		core.KindFailed:            {How: core.Native, With: "message_end with stopReason error; a deadline fails the command"},
		core.KindCancelled:         {How: core.Native, With: "message_end with stopReason aborted"},
	},
}
