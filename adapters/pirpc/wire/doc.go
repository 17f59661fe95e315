// Package wire is the codec of pi's RPC mode (`pi --mode rpc`): lines of JSON on the stdin and
// stdout of a process.
//
// [Decode] reads one line of a process of any version: up to 0.74 updates of a message repeat the
// whole message, which is not read; from 0.84 they have the delta alone. What the hub does not
// know is an [Other]. The functions named after commands write them.
package wire
