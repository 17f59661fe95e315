// Package conversation keeps what was said in a pi session: a tree of entries, of which
// the path to the leaf is the context of its agent.
//
// A [Message] is one AgentMessage, encoded once. A [Tree] grows by messages and by other
// entries ([Tree.AppendMessage], [Tree.AppendEntry]); it can be moved to another entry, forked, shown as an
// [Outline] and cut for a compaction ([CutAt]). A tree belongs to one owner, who guards
// it; its entries never change.
//
// A [Store] has the files of pi's format: it says where they may be, lists and reads them,
// and lets a [File] grow with its tree. It has a lock of its own and waits for no disk
// where a tree grows.
package conversation
