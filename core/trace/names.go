package trace

// Names of the semantic conventions for generative AI (semantic-conventions-genai, in development,
// read 2026-11-22): no released package of OpenTelemetry for Go has them.
const (
	opInvoke  = "invoke_agent"
	opExecute = "execute_tool"
	opNotify  = "notify" // no convention has one

	attrOperation      = "gen_ai.operation.name"
	attrProvider       = "gen_ai.provider.name"
	attrAgentID        = "gen_ai.agent.id"
	attrAgentName      = "gen_ai.agent.name"
	attrConversation   = "gen_ai.conversation.id"
	attrInputTokens    = "gen_ai.usage.input_tokens"
	attrOutputTokens   = "gen_ai.usage.output_tokens"
	attrCacheRead      = "gen_ai.usage.cache_read.input_tokens"
	attrCacheCreation  = "gen_ai.usage.cache_creation.input_tokens"
	attrReasoning      = "gen_ai.usage.reasoning.output_tokens"
	attrToolName       = "gen_ai.tool.name"
	attrToolCallID     = "gen_ai.tool.call.id"
	attrToolArguments  = "gen_ai.tool.call.arguments"
	attrToolResult     = "gen_ai.tool.call.result"
	attrInputMessages  = "gen_ai.input.messages"
	attrOutputMessages = "gen_ai.output.messages"
	attrErrorType      = "error.type"

	errTool = "tool_error"
)

// Names of the hub's own.
const (
	attrTask        = "dragoman.task.id"
	attrEnd         = "dragoman.end"
	attrHops        = "dragoman.hops"
	attrAttempts    = "dragoman.attempts"
	attrDialectFrom = "dragoman.dialect.from"
	attrDialectTo   = "dragoman.dialect.to"
	attrLoss        = "dragoman.loss"
	attrRecovered   = "dragoman.recovered"
	attrOmitted     = "dragoman.omitted"
	attrApproved    = "dragoman.approved"
	attrAgent       = "dragoman.agent"
	attrAttempt     = "dragoman.attempt"

	momentAccepted  = "accepted"
	momentFirst     = "first_chunk"
	momentRequested = "approval_requested"
	momentDecided   = "approval_decided"
	momentAsked     = "question_asked"
	momentAnswered  = "question_answered"
	momentRetrying  = "retrying"
	momentLost      = "session_lost"
	momentSteered   = "steered"
)
