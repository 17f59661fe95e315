// Package e2e has the tests that run whole hubs: every dialect asking every other (matrix),
// golden conversations (conversation), what has failed elsewhere (failures), tasks with
// agents that vanish (soak), the agents and SDKs of others (guides), and every command,
// setting and interface from outside.
//
// A test starts a hub with newStage (stage_test.go), which fails the test when the hub breaks
// a promise, and has agents join it with cast; what they are asked tells them what to do
// (script_test.go). A test that needs the program as a process runs its own binary again
// (main_test.go).
package e2e
