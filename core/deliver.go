package core

// Each kind names itself, goes to its own method of a Sink, and of an AgentSink if it is for
// agents, and estimates its size.

func (Opened) Kind() Kind            { return KindOpened }
func (Assigned) Kind() Kind          { return KindAssigned }
func (Accepted) Kind() Kind          { return KindAccepted }
func (SessionStarted) Kind() Kind    { return KindSessionStarted }
func (SessionLost) Kind() Kind       { return KindSessionLost }
func (Thinking) Kind() Kind          { return KindThinking }
func (Text) Kind() Kind              { return KindText }
func (ToolCall) Kind() Kind          { return KindToolCall }
func (ToolState) Kind() Kind         { return KindToolState }
func (ToolResult) Kind() Kind        { return KindToolResult }
func (ApprovalRequested) Kind() Kind { return KindApprovalRequested }
func (ApprovalDecided) Kind() Kind   { return KindApprovalDecided }
func (QuestionAsked) Kind() Kind     { return KindQuestionAsked }
func (QuestionAnswered) Kind() Kind  { return KindQuestionAnswered }
func (Injected) Kind() Kind          { return KindInjected }
func (InjectionAnswered) Kind() Kind { return KindInjectionAnswered }
func (File) Kind() Kind              { return KindFile }
func (Usage) Kind() Kind             { return KindUsage }
func (Retrying) Kind() Kind          { return KindRetrying }
func (CancelRequested) Kind() Kind   { return KindCancelRequested }
func (ForeignFrame) Kind() Kind      { return KindForeign }
func (Done) Kind() Kind              { return KindDone }
func (Failed) Kind() Kind            { return KindFailed }
func (Cancelled) Kind() Kind         { return KindCancelled }

func (b Opened) deliver(e Event, s Sink) error            { return s.Opened(e, b) }
func (b Assigned) deliver(e Event, s Sink) error          { return s.Assigned(e, b) }
func (b Accepted) deliver(e Event, s Sink) error          { return s.Accepted(e, b) }
func (b SessionStarted) deliver(e Event, s Sink) error    { return s.SessionStarted(e, b) }
func (b SessionLost) deliver(e Event, s Sink) error       { return s.SessionLost(e, b) }
func (b Thinking) deliver(e Event, s Sink) error          { return s.Thinking(e, b) }
func (b Text) deliver(e Event, s Sink) error              { return s.Text(e, b) }
func (b ToolCall) deliver(e Event, s Sink) error          { return s.ToolCall(e, b) }
func (b ToolState) deliver(e Event, s Sink) error         { return s.ToolState(e, b) }
func (b ToolResult) deliver(e Event, s Sink) error        { return s.ToolResult(e, b) }
func (b ApprovalRequested) deliver(e Event, s Sink) error { return s.ApprovalRequested(e, b) }
func (b ApprovalDecided) deliver(e Event, s Sink) error   { return s.ApprovalDecided(e, b) }
func (b QuestionAsked) deliver(e Event, s Sink) error     { return s.QuestionAsked(e, b) }
func (b QuestionAnswered) deliver(e Event, s Sink) error  { return s.QuestionAnswered(e, b) }
func (b Injected) deliver(e Event, s Sink) error          { return s.Injected(e, b) }
func (b InjectionAnswered) deliver(e Event, s Sink) error { return s.InjectionAnswered(e, b) }
func (b File) deliver(e Event, s Sink) error              { return s.File(e, b) }
func (b Usage) deliver(e Event, s Sink) error             { return s.Usage(e, b) }
func (b Retrying) deliver(e Event, s Sink) error          { return s.Retrying(e, b) }
func (b CancelRequested) deliver(e Event, s Sink) error   { return s.CancelRequested(e, b) }
func (b ForeignFrame) deliver(e Event, s Sink) error      { return s.ForeignFrame(e, b) }
func (b Done) deliver(e Event, s Sink) error              { return s.Done(e, b) }
func (b Failed) deliver(e Event, s Sink) error            { return s.Failed(e, b) }
func (b Cancelled) deliver(e Event, s Sink) error         { return s.Cancelled(e, b) }

func (b Assigned) deliverToAgent(e Event, s AgentSink) error        { return s.Assigned(e, b) }
func (b ApprovalDecided) deliverToAgent(e Event, s AgentSink) error { return s.ApprovalDecided(e, b) }
func (b Injected) deliverToAgent(e Event, s AgentSink) error        { return s.Injected(e, b) }
func (b CancelRequested) deliverToAgent(e Event, s AgentSink) error { return s.CancelRequested(e, b) }
func (b Done) deliverToAgent(e Event, s AgentSink) error            { return s.Done(e, b) }
func (b Failed) deliverToAgent(e Event, s AgentSink) error          { return s.Failed(e, b) }
func (b Cancelled) deliverToAgent(e Event, s AgentSink) error       { return s.Cancelled(e, b) }

func (b Opened) size() int         { return 64 + b.Request.Size() }
func (b Assigned) size() int       { return len(b.Agent) + 64 }
func (b Accepted) size() int       { return 8 }
func (b SessionStarted) size() int { return len(b.Session) + 16 }
func (b SessionLost) size() int    { return len(b.Reason) + 16 }
func (b Thinking) size() int       { return len(b.Text) + 16 }
func (b Text) size() int           { return len(b.Text) + 16 }
func (b ToolCall) size() int       { return len(b.ID) + len(b.Name) + len(b.Input) + len(b.Parent) + 64 }
func (b ToolState) size() int      { return len(b.ID) + len(b.Detail) + 40 }
func (b ToolResult) size() int     { return len(b.ID) + len(b.Output) + 40 }
func (b ApprovalRequested) size() int {
	return len(b.ID) + len(b.Name) + len(b.Input) + len(b.InputSHA256) + 64
}
func (b ApprovalDecided) size() int {
	return len(b.ID) + len(b.By) + len(b.Reason) + len(b.Option) + len(b.InputSHA256) + 88
}
func (b QuestionAsked) size() int {
	n := len(b.ID) + len(b.Text) + len(b.Header) + 96
	for _, o := range b.Options {
		n += len(o.Label) + len(o.Description) + 32
	}
	return n
}
func (b QuestionAnswered) size() int {
	n := len(b.ID) + len(b.Text) + len(b.Content) + len(b.Reason) + len(b.By) + 112
	for _, label := range b.Selected {
		n += len(label) + 16
	}
	return n
}
func (b Injected) size() int          { return len(b.ID) + len(b.Content) + len(b.Source) + len(b.Claimed) + 72 }
func (b InjectionAnswered) size() int { return len(b.ID) + len(b.Reason) + 40 }
func (b File) size() int              { return len(b.Name) + len(b.MediaType) + len(b.Data) + 56 }
func (b Usage) size() int             { return 64 + len(b.Model) }
func (b Retrying) size() int          { return len(b.Agent) + len(b.Hub) + 48 + b.Fault.size() }
func (b CancelRequested) size() int   { return len(b.By) + len(b.Reason) + 32 }
func (b ForeignFrame) size() int      { return len(b.Dialect) + len(b.Name) + 32 }
func (b Done) size() int              { return len(b.Text) + len(b.Data) + 56 }
func (b Failed) size() int            { return 16 + b.Fault.size() }
func (b Cancelled) size() int         { return len(b.Reason) + 16 }
