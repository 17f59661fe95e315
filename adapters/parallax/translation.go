package parallax

import (
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = wire.Dialect

// Translation declares how every kind of event is translated between this dialect and
// the hub. Native frames of task_progress and task_accepted are for peers that declared
// the extension. For other peers the event is folded into the end of the task, which has
// members for text and files.
var Translation = core.Translation{
	Dialect: Dialect,
	FromAgent: core.Table{
		core.KindOpened:            internal("the hub sends it"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          native("task_accepted; without it the first message about the task"),
		core.KindSessionStarted:    native("task_progress.session.id; metadata.progress of the end"),
		core.KindSessionLost:       native("task_progress.session.lost; metadata.progress of the end"),
		core.KindThinking:          native("task_progress.thinking; metadata.progress of the end"),
		core.KindText:              native("task_progress.text; task_result.result; task_error.partialResult"),
		core.KindToolCall:          native("task_progress.toolCall; metadata.progress of the end"),
		core.KindToolState:         native("task_progress.toolState; metadata.progress of the end"),
		core.KindToolResult:        native("task_progress.toolResult; metadata.progress of the end"),
		core.KindApprovalRequested: refused("no decision can be sent to an agent of this dialect"),
		core.KindApprovalDecided:   refused("agents do not decide"),
		core.KindInjected:          internal("agents do not inject"),
		core.KindInjectionAnswered: refused("nothing is injected into an agent of this dialect"),
		core.KindFile:              native("task_progress.file; files of task_result.result or task_error.partialResult"),
		core.KindUsage:             native("task_progress.usage; else metadata.tokensUsed of the end, as output"),
		core.KindRetrying:          refused("the hub sends it"),
		core.KindCancelRequested:   internal("agents end their tasks themselves"),
		core.KindForeign:           native("task_progress without a member that the hub knows; task_progress.foreign names a frame of another dialect"),
		core.KindDone:              native("task_result"),
		core.KindFailed:            native("task_error; task_result of status failed"),
		core.KindCancelled:         native("task_error of code CANCELLED; task_result of status cancelled"),
	},
	ToAgent: core.Table{
		core.KindOpened:            internal("part of assigned"),
		core.KindAssigned:          native("task"),
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   refused("agents of this dialect request no approvals"),
		core.KindInjected:          refused("error unsupported: the dialect has no injection"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              fromAgent,
		core.KindUsage:             fromAgent,
		core.KindRetrying:          internal("the next agent gets the task by assigned"),
		core.KindCancelRequested:   native("task_cancelled"),
		core.KindForeign:           fromAgent,
		core.KindDone:              folded("task_cancelled, if the agent still works"),
		core.KindFailed:            folded("task_cancelled, if the agent still works"),
		core.KindCancelled:         folded("task_cancelled, if the agent still works"),
	},
	FromRequester: core.Table{
		core.KindOpened:            native("task_request"),
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
		core.KindApprovalDecided:   refused("the dialect has no message for it; people at the hub decide"),
		core.KindInjected:          internal("the dialect has no message for it"),
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              native("task_request.input.attachments"),
		core.KindUsage:             fromAgent,
		core.KindRetrying:          internal("the hub sends it"),
		core.KindCancelRequested:   native("task_cancel"),
		core.KindForeign:           native("members of task_request that the hub does not know, except its signature"),
		core.KindDone:              fromAgent,
		core.KindFailed:            fromAgent,
		core.KindCancelled:         fromAgent,
	},
	ToRequester: core.Table{
		core.KindOpened:            internal("the requester knows what it asked"),
		core.KindAssigned:          folded("the executionId of later messages"),
		core.KindAccepted:          native("task_accepted"),
		core.KindSessionStarted:    native("task_progress.session.id; metadata.progress of the end"),
		core.KindSessionLost:       native("task_progress.session.lost; metadata.progress of the end"),
		core.KindThinking:          native("task_progress.thinking; metadata.progress of the end"),
		core.KindText:              native("task_progress.text; task_result.result; task_error.partialResult"),
		core.KindToolCall:          native("task_progress.toolCall; metadata.progress of the end"),
		core.KindToolState:         native("task_progress.toolState; metadata.progress of the end"),
		core.KindToolResult:        native("task_progress.toolResult; metadata.progress of the end"),
		core.KindApprovalRequested: native("task_progress.approvalRequested; metadata.progress of the end"),
		core.KindApprovalDecided:   native("task_progress.approvalDecided; metadata.progress of the end"),
		core.KindInjected:          internal("the requester sends it"),
		core.KindInjectionAnswered: native("task_progress.injectionAnswered; metadata.progress of the end"),
		core.KindFile:              native("task_progress.file; files of task_result.result or task_error.partialResult"),
		core.KindUsage:             native("task_progress.usage; metadata.tokensUsed of the end"),
		core.KindRetrying:          native("task_progress.retrying; metadata.progress of the end"),
		core.KindCancelRequested:   folded("task_error of code CANCELLED or TIMEOUT"),
		core.KindForeign:           native("task_progress, verbatim from a Parallax agent; task_progress.foreign names a frame of another dialect"),
		core.KindDone:              native("task_result"),
		core.KindFailed:            native("task_error"),
		core.KindCancelled:         native("task_error of code CANCELLED"),
	},
	Commands: core.CommandTable{
		core.ActOpen:      "task_request; POST /api/executions",
		core.ActCancel:    "task_cancel; POST /api/executions/{id}/cancel",
		core.ActInject:    "",
		core.ActDecide:    "",
		core.ActAnswer:    "",
		core.ActRead:      "GET /api/executions/{id}, its events and their stream",
		core.ActReaders:   "",
		core.ActWatchAll:  "",
		core.ActFollow:    "",
		core.ActSubscribe: "",
		core.ActList:      "GET /api/agents; Registry.ListAgents, Watch",
		core.ActCallTool:  "",
		core.ActProvide:   "",
		core.ActJoin:      "register; AgentGateway.Connect; Registry.Register",
		core.ActConfigure: "",
		core.ActRestart:   "",
		core.ActAdmit:     "",
		core.ActDrain:     "",
		core.ActForget:    "",
	},
}

func native(with string) core.Disposition  { return core.Disposition{How: core.Native, With: with} }
func folded(into string) core.Disposition  { return core.Disposition{How: core.Folded, With: into} }
func refused(why string) core.Disposition  { return core.Disposition{How: core.Refused, With: why} }
func internal(why string) core.Disposition { return core.Disposition{How: core.Internal, With: why} }

var fromAgent = internal("the agent sends it")
