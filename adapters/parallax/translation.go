package parallax

import (
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = wire.Dialect

// Translation says what becomes of every kind of event between this dialect and
// the hub. What is native through task_progress or task_accepted is so with peers
// that declared the extension. For the others it is folded into the end, where
// text and files have places of their own.
var Translation = core.Translation{
	Dialect: Dialect,
	FromAgent: core.Table{
		core.KindOpened:            internal("the hub sends it"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          native("task_accepted; without it the first word on the task"),
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
		core.KindForeign:           native("task_progress without a member that the hub knows"),
		core.KindDone:              native("task_result"),
		core.KindFailed:            native("task_error; task_result of status failed"),
		core.KindCancelled:         native("task_error of code CANCELLED; task_result of status cancelled"),
	},
	ToAgent: core.Table{
		core.KindOpened:            internal("told by assigned"),
		core.KindAssigned:          native("task"),
		core.KindAccepted:          own(),
		core.KindSessionStarted:    own(),
		core.KindSessionLost:       own(),
		core.KindThinking:          own(),
		core.KindText:              own(),
		core.KindToolCall:          own(),
		core.KindToolState:         own(),
		core.KindToolResult:        own(),
		core.KindApprovalRequested: own(),
		core.KindApprovalDecided:   refused("agents of this dialect ask for no approvals"),
		core.KindInjected:          refused("the dialect has no injection: whoever injects is told unsupported"),
		core.KindInjectionAnswered: own(),
		core.KindFile:              own(),
		core.KindUsage:             own(),
		core.KindRetrying:          internal("told by a new assignment of the other agent"),
		core.KindCancelRequested:   native("task_cancelled"),
		core.KindForeign:           own(),
		core.KindDone:              folded("task_cancelled, if the agent still works"),
		core.KindFailed:            folded("task_cancelled, if the agent still works"),
		core.KindCancelled:         folded("task_cancelled, if the agent still works"),
	},
	FromRequester: core.Table{
		core.KindOpened:            native("task_request"),
		core.KindAssigned:          internal("the hub sends it"),
		core.KindAccepted:          internal("the agent sends it"),
		core.KindSessionStarted:    internal("the agent sends it"),
		core.KindSessionLost:       internal("the agent sends it"),
		core.KindThinking:          internal("the agent sends it"),
		core.KindText:              internal("the agent sends it"),
		core.KindToolCall:          internal("the agent sends it"),
		core.KindToolState:         internal("the agent sends it"),
		core.KindToolResult:        internal("the agent sends it"),
		core.KindApprovalRequested: internal("the agent sends it"),
		core.KindApprovalDecided:   refused("the dialect has no message for it: people decide elsewhere"),
		core.KindInjected:          internal("the dialect has no message for it"),
		core.KindInjectionAnswered: internal("the agent sends it"),
		core.KindFile:              native("task_request.input.attachments"),
		core.KindUsage:             internal("the agent sends it"),
		core.KindRetrying:          internal("the hub sends it"),
		core.KindCancelRequested:   native("task_cancel"),
		core.KindForeign:           native("members of task_request without a neutral meaning, but for its signature"),
		core.KindDone:              internal("the agent sends it"),
		core.KindFailed:            internal("the agent sends it"),
		core.KindCancelled:         internal("the agent sends it"),
	},
	ToRequester: core.Table{
		core.KindOpened:            internal("the requester knows what it asked"),
		core.KindAssigned:          folded("the executionId of what follows"),
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
		core.KindInjected:          internal("whoever injected knows"),
		core.KindInjectionAnswered: native("task_progress.injectionAnswered; metadata.progress of the end"),
		core.KindFile:              native("task_progress.file; files of task_result.result or task_error.partialResult"),
		core.KindUsage:             native("task_progress.usage; metadata.tokensUsed of the end"),
		core.KindRetrying:          native("task_progress.retrying; metadata.progress of the end"),
		core.KindCancelRequested:   folded("task_error of code CANCELLED or TIMEOUT"),
		core.KindForeign:           native("task_progress, verbatim from a Parallax agent; task_progress.foreign names another's"),
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
	},
}

func native(with string) core.Disposition  { return core.Disposition{How: core.Native, With: with} }
func folded(into string) core.Disposition  { return core.Disposition{How: core.Folded, With: into} }
func refused(why string) core.Disposition  { return core.Disposition{How: core.Refused, With: why} }
func internal(why string) core.Disposition { return core.Disposition{How: core.Internal, With: why} }
func own() core.Disposition                { return internal("the agent said it itself") }
