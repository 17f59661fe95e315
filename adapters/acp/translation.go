package acp

import (
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Dialect is the name of the dialect in cards, principals and foreign frames.
const Dialect = wire.Dialect

// Translation declares how every kind of event is translated between ACP and the hub.
var Translation = core.Translation{
	Dialect: Dialect,
	FromAgent: core.Table{
		core.KindOpened:            fromHub,
		core.KindAssigned:          fromHub,
		core.KindAccepted:          {How: core.Native, With: "ack of a delegate; progress.accepted of a query"},
		core.KindSessionStarted:    progressMember("session_started"),
		core.KindSessionLost:       progressMember("session_lost"),
		core.KindThinking:          progressMember("thinking"),
		core.KindText:              {How: core.Native, With: "progress.text; without the extension the summary of response or the outcome of result, in done; before a failure partial.summary of error, or the outcome"},
		core.KindToolCall:          progressMember("tool_call"),
		core.KindToolState:         progressMember("tool_state"),
		core.KindToolResult:        progressMember("tool_result"),
		core.KindApprovalRequested: {How: core.Refused, With: "error unsupported: ACP has no kind for the decision"},
		core.KindApprovalDecided:   {How: core.Refused, With: "error unsupported: agents do not decide"},
		core.KindQuestionAsked:     fromHub,
		core.KindQuestionAnswered:  fromHub,
		core.KindInjected:          {How: core.Refused, With: "error unsupported: context is for agents, not from them"},
		core.KindInjectionAnswered: {How: core.Synthesised, With: "the delivery of the notify dragoman.context; progress.injection_answered if the agent sends it"},
		core.KindFile:              {How: core.Native, With: "progress.file; data.files of response, result or partial of error, base64"},
		core.KindUsage:             {How: core.Native, With: "progress.usage; else tokens_used of response, result or partial of error, as output"},
		core.KindRetrying:          fromHub,
		core.KindCancelRequested:   {How: core.Refused, With: "error unsupported: an agent ends its task with error cancelled instead"},
		core.KindForeign:           {How: core.Native, With: "an envelope of an unknown kind with the ref of the task, if the requester speaks ACP; else error unknown_kind; progress.foreign names a frame of another dialect"},
		core.KindDone:              {How: core.Native, With: "response; result completed, or partial for a truncated one"},
		core.KindFailed:            {How: core.Native, With: "error; result failed; ack accepted false, as overloaded"},
		core.KindCancelled:         {How: core.Native, With: "error cancelled; ack of the cancel"},
	},
	ToAgent: core.Table{
		core.KindOpened:            {How: core.Internal, With: "part of assigned"},
		core.KindAssigned:          {How: core.Native, With: "query, delegate or notify, by intent; from an ACP requester the envelope unchanged"},
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         fromAgent,
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   {How: core.Refused, With: "ACP agents request no approvals"},
		core.KindQuestionAsked:     {How: core.Internal, With: "the agent asks by a tool"},
		core.KindQuestionAnswered:  {How: core.Internal, With: "the result of the tool"},
		core.KindInjected:          {How: core.Native, With: "notify of topic dragoman.context"},
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              fromAgent,
		core.KindUsage:             fromAgent,
		core.KindRetrying:          {How: core.Internal, With: "the next agent gets the task by assigned"},
		core.KindCancelRequested:   {How: core.Native, With: "cancel"},
		core.KindForeign:           fromAgent,
		core.KindDone:              fromAgent,
		core.KindFailed:            {How: core.Folded, With: "cancel, if the hub ended the task before the agent did"},
		core.KindCancelled:         {How: core.Folded, With: "cancel, if the hub ended the task before the agent did"},
	},
	FromRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "query, delegate or notify; an unknown kind for an ACP agent, as a notice"},
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
		core.KindApprovalDecided:   {How: core.Refused, With: "error unsupported: ACP has no kind for a decision; people at the hub decide"},
		core.KindQuestionAsked:     fromHub,
		core.KindQuestionAnswered:  fromHub,
		core.KindInjected:          {How: core.Native, With: "notify of topic dragoman.context, with the ref of the query or delegate"},
		core.KindInjectionAnswered: fromAgent,
		core.KindFile:              {How: core.Native, With: "context.files of query or delegate, base64"},
		core.KindUsage:             fromAgent,
		core.KindRetrying:          fromHub,
		core.KindCancelRequested:   {How: core.Native, With: "cancel; the end of an HTTP POST that waits for a query"},
		core.KindForeign:           {How: core.Native, With: "an envelope of an unknown kind to an ACP agent, unchanged; else error unknown_kind"},
		core.KindDone:              fromAgent,
		core.KindFailed:            fromAgent,
		core.KindCancelled:         fromAgent,
	},
	ToRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "ack accepted true of a delegate; nothing for a query, which has only an answer"},
		core.KindAssigned:          {How: core.Internal, With: "the from of later envelopes is the agent"},
		core.KindAccepted:          progressOnly("accepted"),
		core.KindSessionStarted:    progressOnly("session_started"),
		core.KindSessionLost:       progressOnly("session_lost"),
		core.KindThinking:          progressOnly("thinking"),
		core.KindText:              {How: core.Native, With: "progress.text to a peer with the extension; else folded, whole, into the summary of response, the outcome of result or partial.summary of error"},
		core.KindToolCall:          progressOnly("tool_call"),
		core.KindToolState:         progressOnly("tool_state"),
		core.KindToolResult:        progressOnly("tool_result"),
		core.KindApprovalRequested: {How: core.Folded, With: "progress.approval_requested, for information; people at the hub decide"},
		core.KindApprovalDecided:   progressOnly("approval_decided"),
		core.KindQuestionAsked:     progressOnly("question_asked"),
		core.KindQuestionAnswered:  progressOnly("question_answered"),
		core.KindInjected:          {How: core.Internal, With: "the requester sends it"},
		core.KindInjectionAnswered: progressOnly("injection_answered"),
		core.KindFile:              {How: core.Native, With: "progress.file; data.files of response, result or partial of error, base64"},
		core.KindUsage:             {How: core.Folded, With: "progress.usage; tokens_used of response, result or partial of error"},
		core.KindRetrying:          progressOnly("retrying"),
		core.KindCancelRequested:   {How: core.Folded, With: "ack of the cancel, then the end"},
		core.KindForeign:           {How: core.Native, With: "the envelope of an ACP agent, unchanged; of another dialect it is refused and counted"},
		core.KindDone:              {How: core.Native, With: "response; result completed, or partial if truncated, when report_back"},
		core.KindFailed:            {How: core.Native, With: "error, with partial for a partial answer; result failed when report_back"},
		core.KindCancelled:         {How: core.Native, With: "error cancelled, with partial for a partial answer; result failed when report_back"},
	},
	Commands: core.CommandTable{
		core.ActOpen:      "query, delegate, notify",
		core.ActCancel:    "cancel",
		core.ActInject:    "notify of topic dragoman.context",
		core.ActDecide:    "",
		core.ActAnswer:    "",
		core.ActRead:      "a reconnect gets the missing results of delegates with report_back",
		core.ActReaders:   "",
		core.ActWatchAll:  "",
		core.ActFollow:    "",
		core.ActSubscribe: "subscribe",
		core.ActList:      "discover to the hub",
		core.ActCallTool:  "",
		core.ActProvide:   "",
		core.ActJoin:      "the first envelope; capabilities",
		core.ActConfigure: "",
		core.ActRestart:   "",
		core.ActAdmit:     "",
		core.ActDrain:     "",
		core.ActForget:    "",
	},
}

var (
	fromHub   = core.Disposition{How: core.Internal, With: "the hub sends it"}
	fromAgent = core.Disposition{How: core.Internal, With: "the agent sends it"}
)

// progressMember is the disposition of a kind that only a member of progress carries.
func progressMember(member string) core.Disposition {
	return core.Disposition{How: core.Native, With: "progress." + member + ", by the extension"}
}

// progressOnly is the disposition of a kind that only requesters with the extension get. For
// others it is counted and left out of the answer.
func progressOnly(member string) core.Disposition {
	return core.Disposition{How: core.Folded, With: "progress." + member + " to a peer with the extension; else part of the end"}
}
