package rest

import "github.com/dragoman-hub/dragoman/core"

// Translation declares how every kind is translated. Agents do not use this interface; a
// requester gets every event unchanged in its JSON form.
var Translation = core.Translation{
	Dialect: Name,
	FromRequester: core.Table{
		core.KindOpened:            {How: core.Native, With: "POST /v1/tasks, POST /v1/notices"},
		core.KindAssigned:          {How: core.Internal, With: "the hub sends it"},
		core.KindAccepted:          fromAgent,
		core.KindSessionStarted:    fromAgent,
		core.KindSessionLost:       fromAgent,
		core.KindThinking:          fromAgent,
		core.KindText:              fromAgent,
		core.KindToolCall:          fromAgent,
		core.KindToolState:         {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindToolResult:        fromAgent,
		core.KindApprovalRequested: fromAgent,
		core.KindApprovalDecided:   {How: core.Native, With: "POST /v1/tasks/{id}/decisions"},
		core.KindQuestionAsked:     {How: core.Internal, With: "the hub says it"},
		core.KindQuestionAnswered:  {How: core.Native, With: "POST /v1/questions/{id}"},
		core.KindInjected:          {How: core.Native, With: "POST /v1/tasks/{id}/inject"},
		core.KindInjectionAnswered: {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindFile:              {How: core.Folded, With: "attachments of POST /v1/tasks"},
		core.KindUsage:             fromAgent,
		core.KindRetrying:          {How: core.Internal, With: "the hub sends it"},
		core.KindCancelRequested:   {How: core.Native, With: "POST /v1/tasks/{id}/cancel; the end of a connection whose task is not kept"},
		core.KindForeign:           {How: core.Refused, With: "an unknown key is an error that suggests the closest known key"},
		core.KindDone:              fromAgent,
		core.KindFailed:            {How: core.Internal, With: "the agent or the hub sends it"},
		core.KindCancelled:         {How: core.Internal, With: "the agent or the hub sends it"},
	},
	ToRequester: everyEvent(),
	Commands: core.CommandTable{
		core.ActOpen:      "POST /v1/tasks, POST /v1/notices",
		core.ActCancel:    "POST /v1/tasks/{id}/cancel",
		core.ActInject:    "POST /v1/tasks/{id}/inject",
		core.ActDecide:    "POST /v1/tasks/{id}/decisions",
		core.ActAnswer:    "POST /v1/questions/{id}/answer",
		core.ActRead:      "GET /v1/tasks/{id}, GET /v1/tasks/{id}/events, /frames",
		core.ActReaders:   "GET /v1/tasks/{id}/readers",
		core.ActWatchAll:  "GET /v1/events",
		core.ActFollow:    "",
		core.ActSubscribe: "",
		core.ActList:      "GET /v1/agents, tasks, approvals, questions, usage, packs, principals",
		core.ActCallTool:  "",
		core.ActProvide:   "",
		core.ActJoin:      "",
		core.ActConfigure: "PATCH /v1/agents/{id}",
		core.ActRestart:   "POST /v1/agents/{id}/restart",
		core.ActAdmit:     "POST /v1/principals/{id}/approve, /revoke",
		core.ActDrain:     "POST /v1/hub/drain",
		core.ActForget:    "POST /v1/hubs/{id}/forget",
	},
}

var fromAgent = core.Disposition{How: core.Internal, With: "the agent sends it"}

// everyEvent returns the table of a requester that gets every event.
func everyEvent() core.Table {
	t := core.Table{}
	for _, k := range core.Kinds() {
		t[k] = core.Disposition{How: core.Native, With: "event " + k.String()}
	}
	return t
}
