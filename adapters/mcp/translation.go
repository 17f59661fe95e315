package mcp

import "github.com/dragoman-hub/dragoman/core"

// Translation declares what becomes of the events of a task for the client that asked it, and
// what issues each command. MCP clients ask; no agent joins by MCP.
var Translation = core.Translation{
	Dialect: Name,
	FromRequester: core.Table{
		core.KindOpened:            native("tools/call of agent_ask, agent_delegate or agent_notify"),
		core.KindAssigned:          fromHub,
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   native("inputResponses of tools/call or tasks/update; response to elicitation/create"),
		core.KindQuestionAsked:     fromHub,
		core.KindQuestionAnswered:  native("inputResponses of tools/call or tasks/update; response to elicitation/create"),
		core.KindInjected:          internal("no tool injects"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              internal("the tools take no files"),
		core.KindUsage:             fromAgent,
		core.KindRetrying:          fromHub,
		core.KindCancelRequested:   native("notifications/cancelled, tasks/cancel, agent_cancel; the end of the connection"),
		core.KindForeign:           internal("no frames of unknown kinds: unknown methods are answered with an error"),
		core.KindDone:              fromAgent,
		core.KindFailed:            fromAgent,
		core.KindCancelled:         fromAgent,
	},
	ToRequester: core.Table{
		core.KindOpened:            native("result of type task; taskId"),
		core.KindAssigned:          folded("statusMessage of the task; agent_id of the result"),
		core.KindAccepted:          folded("the number of notifications/progress"),
		core.KindSessionStarted:    folded("the number of notifications/progress"),
		core.KindSessionLost:       folded("the number of notifications/progress"),
		core.KindThinking:          folded("message of notifications/progress"),
		core.KindText:              folded("text of the result; its end in message of notifications/progress"),
		core.KindToolCall:          folded("message of notifications/progress"),
		core.KindToolState:         folded("the number of notifications/progress"),
		core.KindToolResult:        folded("the number of notifications/progress"),
		core.KindApprovalRequested: native("inputRequests, or elicitation/create; without elicitation message of notifications/progress"),
		core.KindApprovalDecided:   folded("the end of input_required; notifications/cancelled of elicitation/create"),
		core.KindQuestionAsked:     native("inputRequests, or elicitation/create"),
		core.KindQuestionAnswered:  folded("the end of input_required; notifications/cancelled of elicitation/create"),
		core.KindInjected:          internal("what others inject is between them and the agent"),
		core.KindInjectionAnswered: internal("what others inject is between them and the agent"),
		core.KindFile:              native("image, audio or resource in the content of the result"),
		core.KindUsage:             internal("the hub counts it: see REST and dragoman usage"),
		core.KindRetrying:          folded("message of notifications/progress"),
		core.KindCancelRequested:   folded("the end of the task"),
		core.KindForeign:           internal("a frame of another dialect; the task keeps it"),
		core.KindDone:              native("result; status completed"),
		core.KindFailed:            native("result with isError; status completed"),
		core.KindCancelled:         native("result with isError; status cancelled"),
	},
	Commands: core.CommandTable{
		core.ActOpen:      "agent_ask, agent_delegate, agent_notify",
		core.ActCancel:    "agent_cancel, tasks/cancel, notifications/cancelled",
		core.ActInject:    "",
		core.ActDecide:    "inputResponses, elicitation/create",
		core.ActAnswer:    "inputResponses, elicitation/create",
		core.ActRead:      "agent_result, tasks/get",
		core.ActReaders:   "task_readers",
		core.ActWatchAll:  "",
		core.ActFollow:    "",
		core.ActSubscribe: "",
		core.ActList:      "agents_list",
		core.ActCallTool:  "tools/call",
		core.ActProvide:   "",
		core.ActJoin:      "",
		core.ActConfigure: "",
		core.ActRestart:   "",
		core.ActAdmit:     "",
		core.ActDrain:     "",
		core.ActForget:    "",
	},
}

var (
	fromAgent = internal("the agent sends it")
	fromHub   = internal("the hub sends it")
)

func native(with string) core.Disposition   { return core.Disposition{How: core.Native, With: with} }
func folded(with string) core.Disposition   { return core.Disposition{How: core.Folded, With: with} }
func internal(with string) core.Disposition { return core.Disposition{How: core.Internal, With: with} }
