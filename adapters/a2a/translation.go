package a2a

import (
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Translation declares how every kind is translated, and what gives each command.
var Translation = core.Translation{
	Dialect: wire.Dialect,
	FromRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "SendMessage, SendStreamingMessage"},
		core.KindAssigned:          fromHub,
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   {How: core.Folded, With: "a message with the task's id and a data part {approval}"},
		core.KindInjected:          {How: core.Folded, With: "a message with the task's id, while nothing is asked"},
		core.KindInjectionAnswered: {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindFile:              {How: core.Native, With: "a raw part of the message"},
		core.KindUsage:             fromAgent,
		core.KindRetrying:          fromHub,
		core.KindCancelRequested:   {How: core.Native, With: "CancelTask"},
		core.KindForeign:           {How: core.Native, With: "unknown members of the message, for an agent of the dialect"},
		core.KindDone:              fromAgent,
		core.KindFailed:            {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindCancelled:         {How: core.Internal, With: "the agent or the hub sends it"},
	},
	ToRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "the task that a stream begins with"},
		core.KindAssigned:          {How: core.Native, With: "status TASK_STATE_WORKING"},
		core.KindAccepted:          status,
		core.KindSessionStarted:    status,
		core.KindSessionLost:       status,
		core.KindThinking:          status,
		core.KindText:              {How: core.Native, With: "text part of the artifact answer"},
		core.KindToolCall:          status,
		core.KindToolState:         status,
		core.KindToolResult:        status,
		core.KindApprovalRequested: {How: core.Folded, With: "status TASK_STATE_INPUT_REQUIRED with a data part {approval}"},
		core.KindApprovalDecided:   status,
		core.KindInjected:          {How: core.Folded, With: "message of the task's history; status message with metadata.event"},
		core.KindInjectionAnswered: status,
		core.KindFile:              {How: core.Native, With: "artifact with a raw part"},
		core.KindUsage:             {How: core.Folded, With: "metadata.usage of the last status, summed"},
		core.KindRetrying:          status,
		core.KindCancelRequested:   status,
		core.KindForeign:           {How: core.Native, With: "the item, from an agent of the dialect; else status message with metadata.event"},
		core.KindDone:              {How: core.Native, With: "status TASK_STATE_COMPLETED; data as artifact data"},
		core.KindFailed:            {How: core.Native, With: "status TASK_STATE_FAILED or TASK_STATE_REJECTED with metadata.fault"},
		core.KindCancelled:         {How: core.Native, With: "status TASK_STATE_CANCELED"},
	},
	Commands: core.CommandTable{
		core.ActOpen:      "SendMessage, SendStreamingMessage",
		core.ActCancel:    "CancelTask",
		core.ActInject:    "SendMessage with a taskId",
		core.ActDecide:    "SendMessage with a taskId and {approval}",
		core.ActAnswer:    "SendMessage with a taskId and {answer}, or text",
		core.ActRead:      "GetTask, SubscribeToTask",
		core.ActReaders:   "",
		core.ActWatchAll:  "",
		core.ActFollow:    "",
		core.ActSubscribe: "",
		core.ActList:      "ListTasks, agent cards",
		core.ActCallTool:  "",
		core.ActProvide:   "",
		core.ActJoin:      "",
		core.ActConfigure: "",
	},
}

var (
	fromAgent = core.Disposition{How: core.Internal, With: "the agent sends it"}
	fromHub   = core.Disposition{How: core.Internal, With: "the hub sends it"}
	status    = core.Disposition{How: core.Folded, With: "status message with metadata.event"}
)
