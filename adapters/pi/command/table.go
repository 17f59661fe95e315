package command

import "slices"

// spec is what the server knows of a type of command.
type spec struct {
	// Session says that it is for a session, which it must name (section 17.2).
	Session bool
	// Control says that it does not wait in its lane: it overtakes what runs there
	// (a stated exception to section 7.3).
	Control bool
	// Mutates says that its success raises the version of the session (section 10).
	Mutates bool
	// Volatile says that its success speaks of what the process had in memory, or only looked:
	// after a restart it is done again and not replayed. Other successes say what was done,
	// which the end of the process does not undo.
	Volatile bool
	// opens says that it decides which conversation its session has.
	opens bool
	// fields are those of its own, keys all that it can have.
	fields []field
	keys   []string
	Class  class
}

// Table has every type of command that the specification and its reference know.
var Table = func() map[string]*spec {
	all := commands()
	for kind, c := range all {
		c.Class, c.keys = classes[kind], slices.Clone(envelopeKeys)
		for _, f := range c.fields {
			c.keys = append(c.keys, f.name)
		}
	}
	return all
}()

func commands() map[string]*spec {
	images := field{name: "images", keys: []string{"type", "data", "mimeType"}}
	said := []field{requiredUpTo("message", MaxMessage), images}
	read := func() *spec {
		return &spec{Session: true, Control: true, Volatile: true}
	}
	return map[string]*spec{
		"list_sessions":        {Control: true, Volatile: true},
		"create_session":       {Volatile: true, opens: true, fields: []field{optionalID("sessionId", 0), optional("cwd"), optional("agent"), {name: "thread", check: checkThread}}},
		"delete_session":       {Control: true, Volatile: true, fields: []field{target}},
		"switch_session":       {Control: true, Volatile: true, opens: true, fields: []field{target}},
		"list_stored_sessions": {Control: true, Volatile: true},
		"load_session":         {Volatile: true, opens: true, fields: []field{sessionPath, optionalID("sessionId", 0)}},
		"get_metrics":          {Control: true, Volatile: true},
		"health_check":         {Control: true, Volatile: true},
		"get_startup_recovery": {Control: true, Volatile: true},
		"get_command_history": {Control: true, Volatile: true, fields: []field{
			optionalID("sessionIdFilter", 0), optionalID("commandId", MaxID),
			timestamp("fromTimestamp"), {name: "toTimestamp", check: checkSpan}, {name: "limit", check: checkLimit},
		}},

		"get_state":               read(),
		"get_messages":            read(),
		"get_available_models":    read(),
		"get_commands":            read(),
		"get_skills":              read(),
		"get_tools":               read(),
		"list_session_files":      read(),
		"get_session_stats":       read(),
		"get_fork_messages":       read(),
		"get_tree":                read(),
		"get_last_assistant_text": read(),
		"get_context_usage":       read(),

		"prompt":               {Session: true, Mutates: true, fields: append(said, field{name: "streamingBehavior"})},
		"steer":                {Session: true, Control: true, Mutates: true, fields: said},
		"follow_up":            {Session: true, Control: true, Mutates: true, fields: said},
		"abort":                {Session: true, Control: true, Mutates: true},
		"set_model":            {Session: true, Mutates: true, Volatile: true, fields: []field{required("provider"), required("modelId")}},
		"cycle_model":          {Session: true, Mutates: true, Volatile: true, fields: []field{direction}},
		"set_thinking_level":   {Session: true, Mutates: true, Volatile: true, fields: []field{level}},
		"cycle_thinking_level": {Session: true, Mutates: true, Volatile: true},
		"set_session_name":     {Session: true, Mutates: true, Volatile: true, fields: []field{{name: "name", check: checkName}}},

		"compact":               {Session: true, Mutates: true, fields: []field{optional("customInstructions")}},
		"abort_compaction":      {Session: true, Control: true, Mutates: true},
		"set_auto_compaction":   {Session: true, Mutates: true, Volatile: true, fields: []field{requiredBoolean("enabled")}},
		"set_auto_retry":        {Session: true, Mutates: true, Volatile: true, fields: []field{requiredBoolean("enabled")}},
		"abort_retry":           {Session: true, Control: true, Mutates: true},
		"bash":                  {Session: true, Mutates: true, fields: []field{requiredUpTo("command", maxBash), {name: "excludeFromContext"}}},
		"abort_bash":            {Session: true, Control: true, Mutates: true},
		"export_html":           {Session: true, Mutates: true, fields: []field{optional("outputPath")}},
		"new_session":           {Session: true, Mutates: true, opens: true, fields: []field{{name: "parentSession"}}},
		"switch_session_file":   {Session: true, Mutates: true, opens: true, fields: []field{sessionPath}},
		"fork":                  {Session: true, Mutates: true, opens: true, fields: []field{required("entryId")}},
		"navigate_tree":         {Session: true, Mutates: true, Volatile: true, fields: []field{required("targetId"), treeOptions}},
		"extension_ui_response": {Session: true, Control: true, fields: []field{{name: "requestId", check: checkRequestID}, uiResponse}},
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

// class says how long a type of command may take (facts, section 3.3). The zero
// class is short: what only looks, and what stops something.
type class uint8

// The other classes.
const (
	_ class = iota
	// Long is for what agents and programs do. It is aborted when its time is over.
	Long
	// endless is for what must not be left half done.
	endless
)

var classes = map[string]class{
	"prompt": Long, "steer": Long, "follow_up": Long, "compact": Long, "bash": Long,
	"new_session": Long, "switch_session_file": Long, "fork": Long,
	"create_session": endless, "delete_session": endless, "load_session": endless,
	"set_model": endless, "cycle_model": endless, "set_thinking_level": endless, "cycle_thinking_level": endless,
	"set_auto_compaction": endless, "set_auto_retry": endless, "set_session_name": endless,
	"export_html": endless, "navigate_tree": endless,
}
