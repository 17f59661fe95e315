// Package jsonrpc reads and writes the messages of JSON-RPC 2.0 (jsonrpc.org/specification),
// for every dialect that has them. It knows no transport and keeps no state.
//
// [Read] checks a text strictly, in one pass (package strictjson), and leaves params, result
// and ids as they were sent: whoever needs the inside of params decodes it from the index
// without reading the text again, and an id goes back byte for byte.
//
//	m, fault := jsonrpc.Read(line, strictjson.Limits{})
//	if fault != nil {
//		return jsonrpc.AppendError(nil, m.ID, fault) // an answer that says what to change
//	}
//	switch m.Kind() {
//	case jsonrpc.Request:
//		return jsonrpc.AppendResult(nil, m.ID, answer(m.Method, m.Params))
//	…
//
// Batches are refused: no protocol that the hub speaks has them.
package jsonrpc
