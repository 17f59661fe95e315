package mcp

import "github.com/dragoman-hub/dragoman/core"

// Translation declares what issues each command. MCP clients call the tools of the hub and
// get no events, so the tables of kinds are nil.
var Translation = core.Translation{
	Dialect: Name,
	Commands: core.CommandTable{
		core.ActOpen:      "agent_ask, agent_delegate, agent_notify",
		core.ActCancel:    "agent_cancel",
		core.ActInject:    "",
		core.ActDecide:    "",
		core.ActAnswer:    "",
		core.ActRead:      "agent_result",
		core.ActReaders:   "task_readers",
		core.ActWatchAll:  "",
		core.ActFollow:    "",
		core.ActSubscribe: "",
		core.ActList:      "agents_list",
		core.ActCallTool:  "tools/call",
		core.ActProvide:   "",
		core.ActJoin:      "",
		core.ActConfigure: "",
	},
}
