package pi

import "slices"

// spec is what the server knows of a type of command.
type spec struct {
	// session says that it is for a session, which it must name (section 17.2).
	session bool
	// control says that it does not wait in its lane: it overtakes what runs there
	// (a stated exception to section 7.3).
	control bool
	// mutates says that its success raises the version of the session (section 10).
	mutates bool
	// again says that its success speaks of what the process had in memory, or only looked:
	// after a restart it is done again and not replayed. Other successes say what was done,
	// which the end of the process does not undo.
	again bool
	// opens says that it decides which conversation its session has.
	opens bool
	// fields are those of its own, keys all that it can have.
	fields []field
	keys   []string
	// run executes it, with Server.mu held.
	run func(*Server, *execution) outcome
}

// table has every type of command that the specification and its reference know.
var table = func() map[string]*spec {
	all := commands()
	for _, c := range all {
		c.keys = slices.Clone(envelopeKeys)
		for _, f := range c.fields {
			c.keys = append(c.keys, f.name)
		}
	}
	return all
}()

func commands() map[string]*spec {
	images := field{name: "images", keys: []string{"type", "data", "mimeType"}}
	said := []field{requiredUpTo("message", maxMessage), images}
	read := func(run func(*Server, *execution) outcome) *spec {
		return &spec{session: true, control: true, again: true, run: run}
	}
	return map[string]*spec{
		"list_sessions":        {control: true, again: true, run: listSessions},
		"create_session":       {again: true, opens: true, fields: []field{optionalID("sessionId", 0), optional("cwd"), optional("agent"), {name: "thread", check: checkThread}}, run: createSession},
		"delete_session":       {control: true, again: true, fields: []field{target}, run: deleteSession},
		"switch_session":       {control: true, again: true, opens: true, fields: []field{target}, run: switchSession},
		"list_stored_sessions": {control: true, again: true, run: listStored},
		"load_session":         {again: true, opens: true, fields: []field{sessionPath, optionalID("sessionId", 0)}, run: loadSession},
		"get_metrics":          {control: true, again: true, run: getMetrics},
		"health_check":         {control: true, again: true, run: healthCheck},
		"get_startup_recovery": {control: true, again: true, run: getRecovery},
		"get_command_history": {control: true, again: true, run: getHistory, fields: []field{
			optionalID("sessionIdFilter", 0), optionalID("commandId", maxID),
			timestamp("fromTimestamp"), {name: "toTimestamp", check: checkSpan}, {name: "limit", check: checkLimit},
		}},

		"get_state":               read(getState),
		"get_messages":            read(getMessages),
		"get_available_models":    read(getModels),
		"get_commands":            read(getCommands),
		"get_skills":              read(getSkills),
		"get_tools":               read(getTools),
		"list_session_files":      read(listFiles),
		"get_session_stats":       read(getStats),
		"get_fork_messages":       read(forkMessages),
		"get_tree":                read(getTree),
		"get_last_assistant_text": read(getLastText),
		"get_context_usage":       read(getContext),

		"prompt":               {session: true, mutates: true, fields: append(said, field{name: "streamingBehavior"}), run: prompt},
		"steer":                {session: true, control: true, mutates: true, fields: said, run: steer},
		"follow_up":            {session: true, control: true, mutates: true, fields: said, run: followUp},
		"abort":                {session: true, control: true, mutates: true, run: abort},
		"set_model":            {session: true, mutates: true, again: true, fields: []field{required("provider"), required("modelId")}, run: setModel},
		"cycle_model":          {session: true, mutates: true, again: true, fields: []field{direction}, run: cycleModel},
		"set_thinking_level":   {session: true, mutates: true, again: true, fields: []field{level}, run: setThinking},
		"cycle_thinking_level": {session: true, mutates: true, again: true, run: cycleThinking},
		"set_session_name":     {session: true, mutates: true, again: true, fields: []field{{name: "name", check: checkName}}, run: setName},

		"compact":               {session: true, mutates: true, fields: []field{optional("customInstructions")}, run: compact},
		"abort_compaction":      {session: true, control: true, mutates: true, run: abortCompaction},
		"set_auto_compaction":   {session: true, mutates: true, again: true, fields: []field{requiredBoolean("enabled")}, run: setAutoCompaction},
		"set_auto_retry":        {session: true, mutates: true, again: true, fields: []field{requiredBoolean("enabled")}, run: setAutoRetry},
		"abort_retry":           {session: true, control: true, mutates: true, run: abortRetry},
		"bash":                  {session: true, mutates: true, fields: []field{requiredUpTo("command", maxBash), {name: "excludeFromContext"}}, run: bash},
		"abort_bash":            {session: true, control: true, mutates: true, run: abortBash},
		"export_html":           {session: true, mutates: true, fields: []field{optional("outputPath")}, run: exportHTML},
		"new_session":           {session: true, mutates: true, opens: true, fields: []field{{name: "parentSession"}}, run: newConversation},
		"switch_session_file":   {session: true, mutates: true, opens: true, fields: []field{sessionPath}, run: switchFile},
		"fork":                  {session: true, mutates: true, opens: true, fields: []field{required("entryId")}, run: fork},
		"navigate_tree":         {session: true, mutates: true, again: true, fields: []field{required("targetId"), treeOptions}, run: navigate},
		"extension_ui_response": {session: true, control: true, fields: []field{{name: "requestId", check: checkRequestID}, uiResponse}, run: answer},
	}
}

var (
	target      = field{name: "sessionId", check: checkTarget}
	sessionPath = field{name: "sessionPath", check: checkPath}
	direction   = oneOf("direction", "Must be 'forward' or 'backward'", false, "forward", "backward")
	level       = oneOf("level", "Must be one of: none, low, medium, high, xhigh", true, "none", "low", "medium", "high", "xhigh")
	treeOptions = field{name: "options", check: checkTree, keys: []string{"summarize", "replaceInstructions", "customInstructions", "label"}}
	uiResponse  = field{name: "response", check: checkAnswer, keys: []string{"method", "value", "confirmed", "responses"}}
)
