package coven

import (
	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Name is the name of the dialect.
const Name = wire.Name

// Translation declares the disposition of every kind. Agents ask with the hub's tools;
// the requesters of Coven are the clients of package conversation.
var Translation = core.Translation{
	Dialect: Name,
	FromAgent: core.Table{
		core.KindOpened:            {How: core.Synthesised, With: "ExecutePackTool of agent_ask, agent_delegate or agent_notify"},
		core.KindAssigned:          {How: core.Internal, With: "the hub sends it"},
		core.KindAccepted:          {How: core.Synthesised, With: "the first event that is not error or cancelled"},
		core.KindSessionStarted:    {How: core.Native, With: "session_init"},
		core.KindSessionLost:       {How: core.Native, With: "session_orphaned; failed as unreachable if no event follows"},
		core.KindThinking:          {How: core.Native, With: "thinking"},
		core.KindText:              {How: core.Native, With: "text"},
		core.KindToolCall:          {How: core.Native, With: "tool_use"},
		core.KindToolState:         {How: core.Native, With: "tool_state"},
		core.KindToolResult:        {How: core.Native, With: "tool_result"},
		core.KindApprovalRequested: {How: core.Native, With: "tool_approval_request"},
		core.KindApprovalDecided:   {How: core.Internal, With: "the requester or the hub sends it"},
		core.KindQuestionAsked:     {How: core.Internal, With: "the hub says it; the tool ask_user asks"},
		core.KindQuestionAnswered:  {How: core.Internal, With: "the hub says it"},
		core.KindInjected:          {How: core.Internal, With: "the requester sends it"},
		core.KindInjectionAnswered: {How: core.Native, With: "InjectionAck"},
		core.KindFile:              {How: core.Native, With: "file"},
		core.KindUsage:             {How: core.Native, With: "usage"},
		core.KindRetrying:          {How: core.Internal, With: "the hub sends it"},
		core.KindCancelRequested:   {How: core.Synthesised, With: "ExecutePackTool of agent_cancel"},
		core.KindForeign:           {How: core.Native, With: "an event or a tool state that the hub does not know; fields 1003 to 1005 of MessageResponse, a frame of another dialect"},
		core.KindDone:              {How: core.Native, With: "done"},
		core.KindFailed:            {How: core.Native, With: "error"},
		core.KindCancelled:         {How: core.Native, With: "cancelled"},
	},
	ToAgent: core.Table{
		core.KindOpened: {How: core.Folded, With: "SendMessage: content and attachments; data, context, history, domain, " +
			"token limit and a notice are part of the content"},
		core.KindAssigned:          {How: core.Native, With: "SendMessage"},
		core.KindAccepted:          {How: core.Internal, With: "the agent sends it"},
		core.KindSessionStarted:    {How: core.Internal, With: "the agent sends it"},
		core.KindSessionLost:       {How: core.Internal, With: "the agent sends it"},
		core.KindThinking:          {How: core.Internal, With: "the agent sends it"},
		core.KindText:              {How: core.Internal, With: "the agent sends it"},
		core.KindToolCall:          {How: core.Internal, With: "the agent sends it"},
		core.KindToolState:         {How: core.Internal, With: "the agent sends it"},
		core.KindToolResult:        {How: core.Internal, With: "the agent sends it"},
		core.KindApprovalRequested: {How: core.Internal, With: "the agent sends it"},
		core.KindApprovalDecided:   {How: core.Native, With: "ToolApprovalResponse, without who decided and why"},
		core.KindQuestionAsked:     {How: core.Internal, With: "the agent asks by the tool ask_user"},
		core.KindQuestionAnswered:  {How: core.Internal, With: "the result of the tool ask_user"},
		core.KindInjected:          {How: core.Native, With: "InjectContext if injection was declared, else refused: unsupported"},
		core.KindInjectionAnswered: {How: core.Internal, With: "the agent sends it"},
		core.KindFile:              {How: core.Internal, With: "the agent sends it"},
		core.KindUsage:             {How: core.Internal, With: "the agent sends it"},
		core.KindRetrying:          {How: core.Internal, With: "the task is ended for this agent; another one gets it"},
		core.KindCancelRequested:   {How: core.Native, With: "CancelRequest if cancellation was declared, else the hub ends the task"},
		core.KindForeign:           {How: core.Refused, With: "ServerMessage cannot carry foreign frames"},
		core.KindDone:              {How: core.Internal, With: "the agent sends it"},
		core.KindFailed:            {How: core.Internal, With: "the agent sends it, or gets a CancelRequest"},
		core.KindCancelled:         {How: core.Internal, With: "the agent sends it, or gets a CancelRequest"},
	},
	FromRequester: conversation.FromClient,
	ToRequester:   conversation.ToClient,
	Commands: core.CommandTable{
		core.ActOpen:      "ExecutePackTool of agent_ask, agent_delegate or agent_notify; ClientService.SendMessage",
		core.ActCancel:    "ExecutePackTool of agent_cancel",
		core.ActInject:    "",
		core.ActDecide:    "ClientService.ApproveTool",
		core.ActAnswer:    "ClientService.AnswerQuestion",
		core.ActRead:      "ExecutePackTool of agent_result; ClientService.GetEvents, StreamEvents",
		core.ActReaders:   "ExecutePackTool of task_readers",
		core.ActWatchAll:  "",
		core.ActFollow:    "ClientService.StreamEvents",
		core.ActSubscribe: "",
		core.ActList:      "ExecutePackTool of agents_list; ClientService.ListAgents",
		core.ActCallTool:  "ExecutePackTool",
		core.ActProvide:   "PackService.Register",
		core.ActJoin:      "RegisterAgent",
		core.ActConfigure: "",
		core.ActRestart:   "",
		core.ActAdmit:     "",
		core.ActDrain:     "",
		core.ActForget:    "",
	},
}
