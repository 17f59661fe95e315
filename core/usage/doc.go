// Package usage adds up the tokens of usage events and their cost, keeps the records, and holds them
// against budgets.
//
// [Prices] give an event its cost, once, as it comes. // A [Ledger] has totals by task, agent, thread, requester and day. [Budgets] reports when
// a limit is near or reached. A [Store] keeps the records.
package usage
