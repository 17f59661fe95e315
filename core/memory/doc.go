// Package memory counts the bytes that a hub holds for its peers, against one limit.
//
// A [Budget] is shared by everything that holds such bytes. Each [Kind] is counted in one
// place: the logs of tasks by package task, what waits for a session by package hub, what waits
// for a transport by package link, and bodies by the server that reads them. New work asks with
// [Budget.TryTake] and is refused when the budget is full. What runs only counts, and goes on: the
// sum may exceed the limit by what running work still says. [Budget.IsOver] reports when that is
// so much that the largest of it has to end.
//
// A [Share] is one holder's part. It reports to the Budget in steps, so that a small event
// costs an addition.
//
// Package memory is a leaf: it knows neither tasks nor connections.
package memory
