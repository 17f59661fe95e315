// Package conversation keeps the conversation of a pi session: a tree of entries whose path
// to the leaf is the context of the agent.
//
// A [Message] is one AgentMessage, encoded once. A [Tree] grows by messages and other entries
// ([Tree.AppendMessage], [Tree.AppendEntry]). It can be moved to another entry, forked, shown
// as an [Outline] and cut for a compaction ([CutAt]). A tree is guarded by its owner; its
// entries never change.
//
// A [Store] lists and reads the files of pi's format, and lets a [File] grow with its tree. It
// has a lock of its own, and growing a tree waits for no disk.
package conversation
