package native

import "github.com/dragoman-hub/dragoman/core"

// Translation declares that every kind is native, as far as its direction has it.
var Translation = core.Translation{
	Dialect:   Dialect,
	FromAgent: table(fromAgent),
	ToAgent: table(map[core.Kind]string{
		core.KindOpened:          "event in the role agent, before assigned, with the history of the thread",
		core.KindAssigned:        "event in the role agent",
		core.KindApprovalDecided: "event, to an agent with the feature approvals",
		core.KindInjected:        "event, to an agent with the feature injection",
		core.KindCancelRequested: "event, to an agent with the feature cancellation",
		core.KindDone:            toldEnd,
		core.KindFailed:          toldEnd,
		core.KindCancelled:       toldEnd,
	}),
	FromRequester: table(map[core.Kind]string{
		core.KindOpened:           "call open",
		core.KindApprovalDecided:  "call decide",
		core.KindQuestionAnswered: "call answer",
		core.KindInjected:         "call inject",
		core.KindCancelRequested:  "call cancel",
	}),
	ToRequester: everything(),
	Commands: core.CommandTable{
		core.ActOpen:      "open",
		core.ActCancel:    "cancel",
		core.ActInject:    "inject",
		core.ActDecide:    "decide",
		core.ActAnswer:    "answer",
		core.ActRead:      "read",
		core.ActReaders:   "readers",
		core.ActWatchAll:  "watch_all",
		core.ActFollow:    "follow",
		core.ActSubscribe: "subscribe",
		core.ActList:      "list",
		core.ActCallTool:  "call_tool",
		core.ActProvide:   "provide",
		core.ActJoin:      "join",
		core.ActConfigure: "configure",
		core.ActRestart:   "restart",
		core.ActAdmit:     "admit",
		core.ActDrain:     "drain",
		core.ActForget:    "forget",
	},
}

const toldEnd = "event, if the hub ended the task before the agent did"

// fromAgent has the kinds that an agent says.
var fromAgent = map[core.Kind]string{
	core.KindAccepted:          "event",
	core.KindSessionStarted:    "event",
	core.KindSessionLost:       "event",
	core.KindThinking:          "event",
	core.KindText:              "event",
	core.KindToolCall:          "event",
	core.KindToolState:         "event",
	core.KindToolResult:        "event",
	core.KindApprovalRequested: "event",
	core.KindQuestionAsked:     "call ask",
	core.KindInjectionAnswered: "event",
	core.KindFile:              "event",
	core.KindUsage:             "event",
	core.KindForeign:           "event of a kind that the hub does not know",
	core.KindDone:              "event",
	core.KindFailed:            "event",
	core.KindCancelled:         "event",
}

// table declares the kinds of one direction: those that it has, and the others, which come from
// another side.
func table(has map[core.Kind]string) core.Table {
	t := core.Table{}
	for _, k := range core.Kinds() {
		with, native := has[k]
		_, agents := fromAgent[k]
		switch {
		case native:
			t[k] = core.Disposition{How: core.Native, With: with}
		case agents:
			t[k] = core.Disposition{How: core.Internal, With: "the agent says it, to the requester"}
		default:
			t[k] = core.Disposition{How: core.Internal, With: "the hub says it, or the other side"}
		}
	}
	return t
}

// everything declares that every kind is an event.
func everything() core.Table {
	t := core.Table{}
	for _, k := range core.Kinds() {
		t[k] = core.Disposition{How: core.Native, With: "event"}
	}
	return t
}
