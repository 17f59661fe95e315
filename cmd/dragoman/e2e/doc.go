// Package e2e tests whole hubs: every dialect asking every other (matrix), recorded
// conversations (conversation), failures seen elsewhere (failures), tasks of misbehaving
// agents (soak), the agents and SDKs of others (samples), and every command, setting and
// interface from outside.
//
// newTestHub (testhub_test.go) starts a hub and fails the test if the hub breaks a promise.
// startAgent connects an agent to it, which does what the requests tell it
// (testagent_test.go). A test that needs the program as a process runs its own binary again
// (main_test.go). startCluster (clusterrig_test.go) starts several hubs that work as one, each a
// process that can be killed, stopped and started again at the same addresses; startLoad
// (clusterload_test.go) has agents and clients of every dialect at them, and checks what they were
// told.
package e2e
