package pi

import "github.com/dragoman-hub/dragoman/adapters/pi/command"

// handler does what a command asks for, in a turn of the engine.
type handler func(*Server, *request) command.Outcome

// handlers returns what each type of command does.
func handlers() map[string]handler {
	return map[string]handler{
		"list_sessions":           listSessions,
		"create_session":          createSession,
		"delete_session":          deleteSession,
		"switch_session":          switchSession,
		"list_stored_sessions":    listStored,
		"load_session":            loadSession,
		"get_metrics":             getMetrics,
		"health_check":            healthCheck,
		"get_startup_recovery":    getRecovery,
		"get_command_history":     getHistory,
		"get_state":               getState,
		"get_messages":            getMessages,
		"get_available_models":    getModels,
		"get_commands":            getCommands,
		"get_skills":              getSkills,
		"get_tools":               getTools,
		"list_session_files":      listFiles,
		"get_session_stats":       getStats,
		"get_fork_messages":       forkMessages,
		"get_tree":                getTree,
		"get_last_assistant_text": getLastText,
		"get_context_usage":       getContext,
		"prompt":                  prompt,
		"steer":                   steer,
		"follow_up":               followUp,
		"abort":                   abort,
		"set_model":               setModel,
		"cycle_model":             cycleModel,
		"set_thinking_level":      setThinking,
		"cycle_thinking_level":    cycleThinking,
		"set_session_name":        setName,
		"compact":                 compact,
		"abort_compaction":        abortCompaction,
		"set_auto_compaction":     setAutoCompaction,
		"set_auto_retry":          setAutoRetry,
		"abort_retry":             abortRetry,
		"bash":                    bash,
		"abort_bash":              abortBash,
		"export_html":             exportHTML,
		"new_session":             newConversation,
		"switch_session_file":     switchFile,
		"fork":                    fork,
		"navigate_tree":           navigate,
		"extension_ui_response":   answer,
	}
}
