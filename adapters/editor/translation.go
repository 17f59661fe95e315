package editor

import "github.com/dragoman-hub/dragoman/core"

// Translation declares how every kind of event is translated between this dialect and the hub.
// The requester is an editor: see [Serve]. The agent is one that the hub runs: see package client.
var Translation = core.Translation{
	Dialect:   Dialect,
	FromAgent: agentSays,
	ToAgent:   agentIsTold,
	FromRequester: core.Table{
		core.KindOpened:            native("session/prompt"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   native("the answer to session/request_permission"),
		core.KindInjected:          internal("the protocol has no message for it"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              native("image, audio and resource blocks of session/prompt"),
		core.KindUsage:             fromAgent,
		core.KindRetrying:          internal("the hub sends it"),
		core.KindCancelRequested:   native("session/cancel; $/cancel_request of a prompt; session/close"),
		core.KindForeign:           native("members of session/prompt that the hub does not know, for an agent of the dialect"),
		core.KindDone:              fromAgent,
		core.KindFailed:            fromAgent,
		core.KindCancelled:         fromAgent,
	},
	ToRequester: core.Table{
		core.KindOpened:            native("user_message_chunk of what others asked, and in session/load; the editor knows what it asked itself"),
		core.KindAssigned:          internal("the editor has one agent"),
		core.KindAccepted:          internal("nothing is said before the first update"),
		core.KindSessionStarted:    internal("the session of the editor is the thread"),
		core.KindSessionLost:       folded("agent_thought_chunk"),
		core.KindThinking:          native("agent_thought_chunk"),
		core.KindText:              native("agent_message_chunk"),
		core.KindToolCall:          native("tool_call"),
		core.KindToolState:         native("tool_call_update; denied, timeout and cancelled are failed, and named in its content"),
		core.KindToolResult:        native("tool_call_update"),
		core.KindApprovalRequested: native("session/request_permission; agent_thought_chunk where the editor may not decide"),
		core.KindApprovalDecided:   native("$/cancel_request of session/request_permission, if somebody else decided"),
		core.KindInjected:          folded("user_message_chunk"),
		core.KindInjectionAnswered: folded("agent_thought_chunk, if it was not accepted"),
		core.KindFile:              native("agent_message_chunk with an image or a resource"),
		core.KindUsage:             native("usage of the prompt's result; usage_update from an agent of the dialect"),
		core.KindRetrying:          folded("agent_thought_chunk"),
		core.KindCancelRequested:   folded("stopReason cancelled"),
		core.KindForeign:           native("session/update, verbatim from an agent of the dialect; of another dialect it is refused and counted"),
		core.KindDone:              native("the result of session/prompt; data as a text chunk"),
		core.KindFailed:            native("the error of session/prompt; stopReason refusal"),
		core.KindCancelled:         native("stopReason cancelled"),
	},
	Commands: core.CommandTable{
		core.ActOpen:      "session/prompt",
		core.ActCancel:    "session/cancel; session/close",
		core.ActInject:    "",
		core.ActDecide:    "the answer to session/request_permission",
		core.ActAnswer:    "the answer to elicitation/create",
		core.ActRead:      "session/load, session/resume",
		core.ActReaders:   "",
		core.ActWatchAll:  "",
		core.ActFollow:    "session/new, session/load, session/resume",
		core.ActSubscribe: "",
		core.ActList:      "session/list",
		core.ActCallTool:  "",
		core.ActProvide:   "",
		core.ActJoin:      "",
		core.ActConfigure: "",
		core.ActRestart:   "",
		core.ActAdmit:     "",
		core.ActDrain:     "",
		core.ActForget:    "",
	},
}

func native(with string) core.Disposition  { return core.Disposition{How: core.Native, With: with} }
func folded(into string) core.Disposition  { return core.Disposition{How: core.Folded, With: into} }
func internal(why string) core.Disposition { return core.Disposition{How: core.Internal, With: why} }

var fromAgent = internal("the agent sends it")
