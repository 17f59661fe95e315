// Package conformance runs public conformance suites, and tests in their manner, against the
// program: MCP (mcp_test.go), WebSocket (websocket_test.go), HTTP/2 (http2_test.go) and gRPC
// (grpc_test.go). Each starts a hub as a process of its own (main_test.go).
//
// What fails although it should not stands in testdata/expected.yaml, with the reason
// (expected_test.go). The list must shrink: a test fails that is not on it, and so does a test
// that passes and still is. docs/conformance.md says what the suites are.
package conformance
