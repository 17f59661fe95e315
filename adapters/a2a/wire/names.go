package wire

// Dialect is the name of the dialect in cards, principals and events.
const Dialect = "a2a"

// Version is the version of the protocol in A2A-Version and in cards (section 3.6). Only its
// major and minor numbers count.
const Version = "1.0"

// The service parameters, as headers (section 3.2.6). VersionHeader is also the name of the
// query parameter.
const (
	VersionHeader    = "A2A-Version"
	ExtensionsHeader = "A2A-Extensions"
)

// The bindings in a card (section 5.8).
const (
	BindingJSONRPC = "JSONRPC"
	BindingHTTP    = "HTTP+JSON"
	BindingGRPC    = "GRPC"
)

// The media types of bodies: of the JSON-RPC binding and of cards, of the HTTP+JSON binding
// (section 11.1), and of streams.
const (
	MediaJSON   = "application/json"
	MediaA2A    = "application/a2a+json"
	MediaEvents = "text/event-stream"
)

// CardPath is the path of a card below its base URL (section 8.2).
const CardPath = "/.well-known/agent-card.json"

// The methods of the JSON-RPC binding (section 9.4).
const (
	MethodSend         = "SendMessage"
	MethodStream       = "SendStreamingMessage"
	MethodGetTask      = "GetTask"
	MethodListTasks    = "ListTasks"
	MethodCancelTask   = "CancelTask"
	MethodSubscribe    = "SubscribeToTask"
	MethodCreatePush   = "CreateTaskPushNotificationConfig"
	MethodGetPush      = "GetTaskPushNotificationConfig"
	MethodListPush     = "ListTaskPushNotificationConfigs"
	MethodDeletePush   = "DeleteTaskPushNotificationConfig"
	MethodExtendedCard = "GetExtendedAgentCard"
)

// CursorExtension is the URI of our extension that makes a stream resumable: once a client
// names it in A2A-Extensions, each item of a stream has a cursor in its metadata under this
// key, and a SubscribeToTask whose metadata has it continues after that item.
const CursorExtension = "urn:dragoman:a2a:cursor:1"

// The keys of metadata that the hub writes and reads.
const (
	// MetadataUsage is a [Usage], in the metadata of the end of a task.
	MetadataUsage = "usage"
	// MetadataFault is the fault of a failed task: an object with code, message and retryable.
	MetadataFault = "fault"
	// MetadataEvent is what a status message tells beside its text: an object with kind and
	// the members of the event, as in the native dialect.
	MetadataEvent = "event"
)
