package conversation

import "github.com/dragoman-hub/dragoman/core"

// FromClient and ToClient declare the disposition of every kind, from and to a client.
var (
	FromClient = core.Table{
		core.KindOpened:            {How: core.Native, With: "SendMessage"},
		core.KindAssigned:          {How: core.Internal, With: "the hub sends it"},
		core.KindAccepted:          {How: core.Internal, With: "the agent sends it"},
		core.KindSessionStarted:    {How: core.Internal, With: "the agent sends it"},
		core.KindSessionLost:       {How: core.Internal, With: "the agent sends it"},
		core.KindThinking:          {How: core.Internal, With: "the agent sends it"},
		core.KindText:              {How: core.Internal, With: "the agent sends it"},
		core.KindToolCall:          {How: core.Internal, With: "the agent sends it"},
		core.KindToolState:         {How: core.Internal, With: "the agent sends it"},
		core.KindToolResult:        {How: core.Internal, With: "the agent sends it"},
		core.KindApprovalRequested: {How: core.Internal, With: "the agent sends it"},
		core.KindApprovalDecided:   {How: core.Native, With: "ApproveTool"},
		core.KindQuestionAsked:     {How: core.Internal, With: "the hub says it"},
		core.KindQuestionAnswered:  {How: core.Native, With: "AnswerQuestion"},
		core.KindInjected:          {How: core.Refused, With: "ClientService has no call for it"},
		core.KindInjectionAnswered: {How: core.Internal, With: "the agent sends it"},
		core.KindFile:              {How: core.Native, With: "attachments of SendMessage"},
		core.KindUsage:             {How: core.Internal, With: "the agent sends it"},
		core.KindRetrying:          {How: core.Internal, With: "the hub sends it"},
		core.KindCancelRequested:   {How: core.Refused, With: "ClientService has no call for it"},
		core.KindForeign:           {How: core.Refused, With: "ClientService cannot carry foreign frames"},
		core.KindDone:              {How: core.Internal, With: "the agent sends it"},
		core.KindFailed:            {How: core.Internal, With: "the agent sends it"},
		core.KindCancelled:         {How: core.Internal, With: "the agent sends it"},
	}
	ToClient = core.Table{
		core.KindOpened:            {How: core.Folded, With: "event of type message: content, with data and the names of attachments below"},
		core.KindAssigned:          {How: core.Internal, With: "the author of what follows"},
		core.KindAccepted:          {How: core.Folded, With: "thinking, if the agent sent an estimate"},
		core.KindSessionStarted:    {How: core.Folded, With: "event of type session_init"},
		core.KindSessionLost:       {How: core.Folded, With: "event of type session_orphaned"},
		core.KindThinking:          {How: core.Native, With: "thinking"},
		core.KindText:              {How: core.Native, With: "text, consecutive pieces joined"},
		core.KindToolCall:          {How: core.Native, With: "tool_use"},
		core.KindToolState:         {How: core.Native, With: "tool_state"},
		core.KindToolResult:        {How: core.Native, With: "tool_result"},
		core.KindApprovalRequested: {How: core.Native, With: "tool_approval"},
		core.KindApprovalDecided:   {How: core.Folded, With: "event of type tool_approval"},
		core.KindQuestionAsked:     {How: core.Native, With: "user_question; event of type user_question in GetEvents"},
		core.KindQuestionAnswered:  {How: core.Folded, With: "event of type question_answered"},
		core.KindInjected:          {How: core.Folded, With: "event of type injection"},
		core.KindInjectionAnswered: {How: core.Folded, With: "event of type injection_ack"},
		core.KindFile:              {How: core.Folded, With: "event of type file, the bytes as a data: URI if they fit into a message"},
		core.KindUsage:             {How: core.Native, With: "usage"},
		core.KindRetrying:          {How: core.Folded, With: "event of type retrying"},
		core.KindCancelRequested:   {How: core.Folded, With: "event of type cancel"},
		core.KindForeign:           {How: core.Folded, With: "event of type foreign, by its name"},
		core.KindDone:              {How: core.Native, With: "done; data as text before it"},
		core.KindFailed:            {How: core.Native, With: "error"},
		core.KindCancelled:         {How: core.Folded, With: "error"},
	}
)
