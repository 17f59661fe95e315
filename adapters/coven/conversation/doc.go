// Package conversation serves coven.ClientService: people's programs talk with agents
// in conversations, which are the threads of the hub.
//
// [Service.SendMessage] opens a task in the thread. [Service.StreamEvents] streams what
// happens in the thread: messages that are events of a task as they happen (live.go),
// after those of earlier turns as history. [Service.GetEvents] returns the history in
// pages: what was said, which tools ran and how each task ended (history.go).
package conversation
