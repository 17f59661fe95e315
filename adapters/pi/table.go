package pi

import "time"

// spec is what the server knows of a type of command.
type spec struct {
	// session says that it is for a session, which it must name (section 17.2).
	session bool
	// control says that it does not wait in its lane: it overtakes what runs there
	// (a stated exception to section 7.3).
	control bool
	// mutates says that its success raises the version of the session (section 10).
	mutates bool
	// timeout is how long it may take from its admission; zero sets no limit.
	timeout time.Duration
	// check adds what is wrong with the fields of its own.
	check func(*problems, command)
	// run executes it, with Server.mu held. Nil is a command of the specification
	// that this server does not offer.
	run func(*Server, *execution) outcome
}

// The classes of time that a command has (facts, section 3.3).
const longTime = 300 * time.Second

// table has every type of command that the specification and its reference know.
var table = commands()

func commands() map[string]*spec {
	text := requiredUpTo("message", maxMessage)
	read := func(run func(*Server, *execution) outcome) *spec {
		return &spec{session: true, control: true, run: run}
	}
	return map[string]*spec{
		"list_sessions":        {control: true, run: listSessions},
		"create_session":       {check: check(optionalID("sessionId", 0), optional("cwd"), optional("agent")), run: createSession},
		"delete_session":       {control: true, check: target, run: deleteSession},
		"switch_session":       {control: true, check: target, run: switchSession},
		"list_stored_sessions": {control: true},
		"load_session":         {check: check(checkPath, optionalID("sessionId", 0))},
		"get_metrics":          {control: true},
		"health_check":         {control: true, run: healthCheck},
		"get_startup_recovery": {control: true},
		"get_command_history": {control: true, check: check(
			optionalID("sessionIdFilter", 0), optionalID("commandId", maxID), checkHistory)},

		"get_state":               read(getState),
		"get_messages":            read(getMessages),
		"get_available_models":    read(getModels),
		"get_commands":            read(getCommands),
		"get_skills":              read(getSkills),
		"get_tools":               read(getTools),
		"list_session_files":      read(nil),
		"get_session_stats":       read(getStats),
		"get_fork_messages":       read(nil),
		"get_tree":                read(nil),
		"get_last_assistant_text": read(getLastText),
		"get_context_usage":       read(getContext),

		"prompt":               {session: true, mutates: true, timeout: longTime, check: text, run: prompt},
		"steer":                {session: true, control: true, mutates: true, timeout: longTime, check: text, run: steer},
		"follow_up":            {session: true, control: true, mutates: true, timeout: longTime, check: text, run: followUp},
		"abort":                {session: true, control: true, mutates: true, run: abort},
		"set_model":            {session: true, mutates: true, check: check(required("provider"), required("modelId")), run: setModel},
		"cycle_model":          {session: true, mutates: true, check: checkDirection, run: cycleModel},
		"set_thinking_level":   {session: true, mutates: true, check: checkLevel},
		"cycle_thinking_level": {session: true, mutates: true},
		"set_session_name":     {session: true, mutates: true, check: checkName, run: setName},

		"compact":               {session: true, mutates: true, timeout: longTime, check: optional("customInstructions")},
		"abort_compaction":      {session: true, control: true, mutates: true},
		"set_auto_compaction":   {session: true, mutates: true, check: requiredBoolean("enabled")},
		"set_auto_retry":        {session: true, mutates: true, check: requiredBoolean("enabled")},
		"abort_retry":           {session: true, control: true, mutates: true},
		"bash":                  {session: true, mutates: true, timeout: longTime, check: requiredUpTo("command", maxBash)},
		"abort_bash":            {session: true, control: true, mutates: true},
		"export_html":           {session: true, mutates: true, check: optional("outputPath")},
		"new_session":           {session: true, mutates: true, timeout: longTime},
		"switch_session_file":   {session: true, mutates: true, timeout: longTime, check: checkPath},
		"fork":                  {session: true, mutates: true, timeout: longTime, check: required("entryId")},
		"navigate_tree":         {session: true, mutates: true, check: check(required("targetId"), checkTree)},
		"extension_ui_response": {session: true, control: true, check: checkAnswer, run: answer},
	}
}

var (
	checkDirection = oneOf("direction", "Must be 'forward' or 'backward'", false, "forward", "backward")
	checkLevel     = oneOf("level", "Must be one of: none, low, medium, high, xhigh", true, "none", "low", "medium", "high", "xhigh")
)
