package command

import (
	"slices"
)

// spec is what the server knows of a type of command.
type spec struct {
	// Session says that the command is for a session, which it must name (section 17.2).
	Session bool
	// Control says that the command does not wait in its lane: it overtakes what runs
	// there (a stated exception to section 7.3).
	Control bool
	// Mutates says that success raises the version of the session (section 10).
	Mutates bool
	// Volatile says that success describes the memory of the process, or changes only
	// that: after a restart the command is executed again instead of replayed.
	Volatile bool
	// opens says that the command decides which conversation its session has.
	opens bool
	Limit timeLimit
	// fields are those of the envelope and those of the type.
	fields []field
}

// timeLimit says how long a type of command may take (facts, section 3.3). The zero value
// is short: for commands that only read or stop something.
type timeLimit uint8

// The other limits.
const (
	_ timeLimit = iota
	// Long is for work of agents and programs, which is aborted at its deadline.
	Long
	// unlimited is for commands that must not be left half done.
	unlimited
)

// Table has every type of command that the specification and its reference know.
var Table = func() map[string]*spec {
	all := commands()
	for _, kind := range []string{
		"get_state", "get_messages", "get_available_models", "get_commands", "get_skills", "get_tools", "list_session_files",
		"get_session_stats", "get_fork_messages", "get_tree", "get_last_assistant_text", "get_context_usage",
	} {
		all[kind] = &spec{Session: true, Control: true, Volatile: true}
	}
	for _, c := range all {
		c.fields = slices.Concat(envelope, c.fields)
	}
	return all
}()

func commands() map[string]*spec {
	message := []field{
		key("message", first(required, upTo(MaxMessage))),
		{name: "images", members: []field{key("type"), key("data"), key("mimeType")}},
		key("traceparent"), key("tracestate"),
	}
	file := key("sessionPath", sessionPath)
	optionalID := key("sessionId", notBlank)
	target := key("sessionId", sessionID)
	setting := func(fields ...field) *spec {
		return &spec{Session: true, Mutates: true, Volatile: true, Limit: unlimited, fields: fields}
	}
	return map[string]*spec{
		"list_sessions":        {Control: true, Volatile: true},
		"list_stored_sessions": {Control: true, Volatile: true},
		"get_metrics":          {Control: true, Volatile: true},
		"health_check":         {Control: true, Volatile: true},
		"get_startup_recovery": {Control: true, Volatile: true},
		"get_command_history": {Control: true, Volatile: true, fields: []field{
			key("sessionIdFilter", notBlank),
			key("commandId", notBlank, upTo(MaxID)),
			key("fromTimestamp", timestamp),
			{name: "toTimestamp", rules: []rule{timestamp}, check: checkTimes},
			key("limit", optional(historyCount)),
		}},

		"create_session": {Volatile: true, opens: true, Limit: unlimited, fields: []field{
			optionalID, key("cwd", optionalString), key("agent", optionalString), key("thread", threadID),
		}},
		"load_session":   {Volatile: true, opens: true, Limit: unlimited, fields: []field{file, optionalID}},
		"switch_session": {Control: true, Volatile: true, opens: true, fields: []field{target}},
		"delete_session": {Control: true, Volatile: true, Limit: unlimited, fields: []field{target}},

		"prompt":           {Session: true, Mutates: true, Limit: Long, fields: append(message, key("streamingBehavior"))},
		"steer":            {Session: true, Control: true, Mutates: true, Limit: Long, fields: message},
		"follow_up":        {Session: true, Control: true, Mutates: true, Limit: Long, fields: message},
		"compact":          {Session: true, Mutates: true, Limit: Long, fields: []field{key("customInstructions", optionalString)}},
		"abort":            {Session: true, Control: true, Mutates: true},
		"abort_compaction": {Session: true, Control: true, Mutates: true},
		"abort_retry":      {Session: true, Control: true, Mutates: true},
		"abort_bash":       {Session: true, Control: true, Mutates: true},
		"bash": {Session: true, Mutates: true, Limit: Long, fields: []field{
			key("command", first(required, upTo(maxBash))), key("excludeFromContext"),
		}},

		"new_session":         {Session: true, Mutates: true, Limit: Long, opens: true, fields: []field{key("parentSession")}},
		"switch_session_file": {Session: true, Mutates: true, Limit: Long, opens: true, fields: []field{file}},
		"fork":                {Session: true, Mutates: true, Limit: Long, opens: true, fields: []field{key("entryId", required)}},

		"set_model": setting(key("provider", required), key("modelId", required)),
		"cycle_model": setting(
			key("direction", optional(oneOf("Must be 'forward' or 'backward'", "forward", "backward"))),
		),
		"set_thinking_level": setting(
			key("level", oneOf("Must be one of: none, low, medium, high, xhigh", "none", "low", "medium", "high", "xhigh")),
		),
		"cycle_thinking_level": setting(),
		"set_session_name":     setting(key("name", first(required, upTo(maxName)), noControls)),
		"set_auto_compaction":  setting(key("enabled", requiredBoolean)),
		"set_auto_retry":       setting(key("enabled", requiredBoolean)),
		"navigate_tree": setting(key("targetId", required), field{
			name: "options", rules: []rule{optionalObject}, members: []field{
				key("summarize", optionalBoolean), key("replaceInstructions", optionalBoolean),
				key("customInstructions", optionalString), key("label", optionalString),
			},
		}),

		"export_html": {Session: true, Mutates: true, Limit: unlimited, fields: []field{key("outputPath", optionalString)}},
		"extension_ui_response": {Session: true, Control: true, fields: []field{
			key("requestId", first(required, upTo(MaxID)), requestID),
			{name: "response", rules: []rule{requiredObject}, members: []field{
				key("method", oneOf("Must be one of: select, confirm, input, editor, interview, cancelled",
					"select", "confirm", "input", "editor", "interview", "cancelled")),
				key("value"), key("confirmed"), key("responses"),
			}},
		}},
	}
}
