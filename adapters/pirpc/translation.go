package pirpc

import "github.com/dragoman-hub/dragoman/core"

// Translation declares how every kind of event is translated between pi and the hub. There are
// only agents of this dialect.
var Translation = core.Translation{
	Dialect: Name,
	FromAgent: core.Table{
		core.KindOpened:            internal("the hub sends it"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          native("the response to prompt"),
		core.KindSessionStarted:    native("sessionId of get_state, in the first task of a session"),
		core.KindSessionLost:       synthesised("a switch_session that fails, or a process that has ended with a session in memory"),
		core.KindThinking:          native("message_update with thinking_delta"),
		core.KindText:              native("message_update with text_delta; message_end has the whole text"),
		core.KindToolCall:          native("tool_execution_start"),
		core.KindToolState:         native("tool_execution_update: what its partialResult adds"),
		core.KindToolResult:        native("tool_execution_end; an image is a note in its text"),
		core.KindApprovalRequested: native("extension_ui_request confirm, or select between approving and denying; others are questions"),
		core.KindApprovalDecided:   internal("agents do not decide"),
		core.KindQuestionAsked:     internal("the hub says it; extension_ui_request asks"),
		core.KindQuestionAnswered:  internal("the hub says it"),
		core.KindInjected:          internal("agents do not inject"),
		core.KindInjectionAnswered: native("the response to steer or follow_up"),
		core.KindFile:              internal("the answers of pi have no files"),
		core.KindUsage:             native("usage of the message_end of the assistant"),
		core.KindRetrying:          internal("auto_retry_start is of pi's own attempts: foreign"),
		core.KindCancelRequested:   internal("agents end their tasks themselves"),
		core.KindForeign:           native("queue_update, compaction_start and _end, auto_retry_start and _end, extension_ui_request notify and its kin, every event that the hub does not know"),
		core.KindDone:              native("agent_settled; up to 0.80 agent_end if get_state says that nothing follows"),
		core.KindFailed:            native("the same after a message_end of stopReason error; the end of the process"),
		core.KindCancelled:         native("the same after a message_end of stopReason aborted"),
	},
	ToAgent: core.Table{
		core.KindOpened:            internal("part of assigned"),
		core.KindAssigned:          native("prompt, with images; data, context, other text files and max_tokens are folded into its text"),
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   native("extension_ui_response"),
		core.KindQuestionAsked:     internal("the agent asks by extension_ui_request"),
		core.KindQuestionAnswered:  internal("extension_ui_response"),
		core.KindInjected:          native("steer; a deferred one follow_up"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              fromAgent,
		core.KindUsage:             fromAgent,
		core.KindRetrying:          internal("the next agent gets the task by assigned"),
		core.KindCancelRequested:   native("abort"),
		core.KindForeign:           fromAgent,
		core.KindDone:              folded("the end of the process, if it still works"),
		core.KindFailed:            folded("the end of the process, if it still works"),
		core.KindCancelled:         folded("the end of the process, if it still works"),
	},
	Commands: func() core.CommandTable {
		none := core.CommandTable{}
		for _, act := range core.Acts() {
			none[act] = ""
		}
		return none
	}(),
}

func native(with string) core.Disposition { return core.Disposition{How: core.Native, With: with} }
func folded(into string) core.Disposition { return core.Disposition{How: core.Folded, With: into} }
func synthesised(of string) core.Disposition {
	return core.Disposition{How: core.Synthesised, With: of}
}
func internal(why string) core.Disposition { return core.Disposition{How: core.Internal, With: why} }

var fromAgent = internal("the agent sends it")
