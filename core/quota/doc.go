// Package quota bounds what one principal may have of a hub at once: connections, running tasks,
// the bytes of those, and calls per second.
//
// A [Book] has the account of every principal. The hub asks it at its door with [Book.Admit],
// for a connection with [Book.Connect], and for a task with [Book.Begin]; the task adds to its
// [Work] what its agent says, and ends it. New work over a quota is refused with a Fault that
// names the quota, its value and when to come again. What runs goes on.
//
// On an open hub nobody proves who they are, and a name costs nothing. There all who proved
// nothing share one account. Their connections are not counted: the limits of the listeners
// bound those. Parts of the hub itself are not counted; what they open for others counts for
// those.
package quota
