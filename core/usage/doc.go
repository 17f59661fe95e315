// Package usage adds up the tokens of usage events, keeps the records, and holds them
// against budgets.
//
// A [Ledger] has totals by task, agent, thread, requester and day. [Budgets] reports when
// a limit is near or reached. A [Store] keeps the records.
package usage
