package conformance

import "strings"

// socketCase is what a client sends to the hub, and what the hub sends then: words with commas
// between. Unless it closes, the hub has to answer another question afterwards.
type socketCase struct {
	name   string
	sent   string
	want   string
	slowly bool // one byte at a time
	// maybe is what the hub may send before, if it gets to it: it need not answer a client that has
	// gone or has broken the protocol.
	maybe string
}

const (
	// limit is the default limit of a frame of the native dialect.
	limit = 10 << 20
	// hardLimit is the largest message that the hub skips.
	hardLimit = 100 << 20

	rsv1, rsv2, rsv3 = 0x40, 0x20, 0x10
)

// half and rest are a question in two pieces, cut inside a character of several bytes.
var half, rest = asking("übrig")[:len(`{"tools":{"id":"`)+1], asking("übrig")[len(`{"tools":{"id":"`)+1:]

// long returns a message of a length. The hub ignores what it does not know, and answers.
func long(length int) string {
	q := asking("long")
	return q[:len(q)-1] + strings.Repeat(" ", length-len(q)) + "}"
}

// socketCases are in the order of the Autobahn test suite, whose numbers are in the comments. The
// WebSocket package has its own tests of single frames; these are about what the hub makes of
// sequences.
var socketCases = []socketCase{
	// 1: framing
	{name: "a text", sent: frame(fin|text, asking("a")), want: "answer a"},
	{name: "a text of one byte at a time", sent: frame(fin|text, asking("a")), want: "answer a", slowly: true},
	{name: "an empty text", sent: frame(fin|text, ""), want: "error invalid"},
	{name: "a text of 125 bytes", sent: frame(fin|text, long(125)), want: "answer long"},
	{name: "a text of 126 bytes", sent: frame(fin|text, long(126)), want: "answer long"},
	{name: "a text of 65,535 bytes", sent: frame(fin|text, long(65_535)), want: "answer long"},
	{name: "a text of 65,536 bytes", sent: frame(fin|text, long(65_536)), want: "answer long"},
	{name: "a text at the limit", sent: frame(fin|text, long(limit)), want: "answer long"},
	{name: "a text over the limit", sent: frame(fin|text, long(limit+1)), want: "error too_large"},
	{name: "fragments over the limit", sent: frame(text, long(limit)) + frame(fin, " "), want: "error too_large"},
	{name: "a text over the hard limit", sent: frame(fin|text, long(hardLimit+1)), want: "close 1009"},
	{name: "a binary message", sent: frame(fin|bytes, asking("a")), want: "error invalid"},
	{name: "a length in more bytes than needed", sent: "\x81\xfe\x00\x01" + string(mask[:]) + masked("1"), want: "error invalid"},
	{name: "a length beyond 63 bits", sent: "\x81\xff\x80\x00\x00\x00\x00\x00\x00\x00" + string(mask[:]), want: "close 1002"},
	{name: "two texts in one write", sent: frame(fin|text, asking("a")) + frame(fin|text, asking("b")), want: "answer a, answer b"},

	// 2: pings and pongs
	{name: "a ping", sent: frame(fin|ping, ""), want: "pong "},
	{name: "a ping with a payload", sent: frame(fin|ping, "are you there?"), want: "pong are you there?"},
	{name: "a ping with bytes that are not UTF-8", sent: frame(fin|ping, "\x00\xff\xfe"), want: "pong \x00\xff\xfe"},
	{name: "a ping of 125 bytes", sent: frame(fin|ping, strings.Repeat("p", 125)), want: "pong 125 bytes"},
	{name: "a ping of 126 bytes", sent: frame(fin|ping, strings.Repeat("p", 126)), want: "close 1002"},
	{name: "a ping of one byte at a time", sent: frame(fin|ping, "slow"), want: "pong slow", slowly: true},
	{name: "a pong that nobody asked for", sent: frame(fin|pong, "hello"), want: ""},
	{name: "pongs and a ping", sent: frame(fin|pong, "x") + frame(fin|ping, "y") + frame(fin|pong, "z"), want: "pong y"},
	{name: "ten pings", sent: strings.Repeat(frame(fin|ping, "x"), 10), want: "pong x"},

	// 3: reserved bits
	{name: "RSV1", sent: frame(fin|rsv1|text, asking("a")), want: "close 1002"},
	{name: "RSV2", sent: frame(fin|rsv2|text, asking("a")), want: "close 1002"},
	{name: "RSV3", sent: frame(fin|rsv3|text, asking("a")), want: "close 1002"},
	{name: "RSV1 after a good text", sent: frame(fin|text, asking("a")) + frame(fin|rsv1|text, ""), want: "close 1002", maybe: "answer a"},
	{name: "RSV1 in a continuation", sent: frame(text, half) + frame(fin|rsv1, rest), want: "close 1002"},
	{name: "RSV2 in a ping", sent: frame(fin|rsv2|ping, ""), want: "close 1002"},
	{name: "RSV3 in a close", sent: frame(fin|rsv3|closed, "\x03\xe8"), want: "close 1002"},

	// 4: reserved opcodes
	{name: "opcode 3", sent: frame(fin|0x3, "x"), want: "close 1002"},
	{name: "opcode 4", sent: frame(fin|0x4, ""), want: "close 1002"},
	{name: "opcode 5", sent: frame(fin|0x5, "x"), want: "close 1002"},
	{name: "opcode 6", sent: frame(fin|0x6, "x"), want: "close 1002"},
	{name: "opcode 7", sent: frame(fin|0x7, "x"), want: "close 1002"},
	{name: "opcode 11", sent: frame(fin|0xB, "x"), want: "close 1002"},
	{name: "opcode 12", sent: frame(fin|0xC, ""), want: "close 1002"},
	{name: "opcode 13", sent: frame(fin|0xD, "x"), want: "close 1002"},
	{name: "opcode 14", sent: frame(fin|0xE, "x"), want: "close 1002"},
	{name: "opcode 15", sent: frame(fin|0xF, "x"), want: "close 1002"},

	// 5: fragments
	{name: "a text in two fragments", sent: frame(text, half) + frame(fin, rest), want: "answer übrig"},
	{name: "a text in fragments of one byte", sent: fragments(asking("a")), want: "answer a"},
	{name: "fragments of one byte at a time", sent: frame(text, half) + frame(fin, rest), want: "answer übrig", slowly: true},
	{name: "an empty first fragment", sent: frame(text, "") + frame(fin, asking("a")), want: "answer a"},
	{name: "an empty last fragment", sent: frame(text, asking("a")) + frame(fin, ""), want: "answer a"},
	{name: "a ping between fragments", sent: frame(text, half) + frame(fin|ping, "now") + frame(fin, rest), want: "pong now, answer übrig"},
	{name: "a pong between fragments", sent: frame(text, half) + frame(fin|pong, "now") + frame(fin, rest), want: "answer übrig"},
	{name: "a close between fragments", sent: frame(text, half) + closing(1000, ""), want: "close 1000"},
	{name: "a ping in fragments", sent: frame(ping, "x") + frame(fin, "y"), want: "close 1002"},
	{name: "a pong in fragments", sent: frame(pong, "x") + frame(fin, "y"), want: "close 1002"},
	{name: "a close in fragments", sent: frame(closed, "\x03\xe8") + frame(fin, "y"), want: "close 1002"},
	{name: "a continuation of nothing", sent: frame(fin, asking("a")), want: "close 1002"},
	{name: "an unfinished continuation of nothing", sent: frame(0, asking("a")), want: "close 1002"},
	{name: "a continuation after a whole text", sent: frame(fin|text, asking("a")) + frame(fin, "x"), want: "close 1002", maybe: "answer a"},
	{name: "a text inside a text", sent: frame(text, half) + frame(fin|text, rest), want: "close 1002"},
	{name: "a binary message inside a text", sent: frame(text, half) + frame(fin|bytes, rest), want: "close 1002"},

	// 6: UTF-8
	{name: "characters of one to four bytes", sent: frame(fin|text, asking("aé€𝄞")), want: "answer aé€𝄞"},
	{name: "a byte that is never UTF-8", sent: frame(fin|text, "\"\xff\""), want: "close 1007"},
	{name: "a continuation byte alone", sent: frame(fin|text, "\"\x80\""), want: "close 1007"},
	{name: "a character that is cut", sent: frame(fin|text, "\"\xe2\x82"), want: "close 1007"},
	{name: "a slash in two bytes", sent: frame(fin|text, "\"\xc0\xaf\""), want: "close 1007"},
	{name: "a slash in three bytes", sent: frame(fin|text, "\"\xe0\x80\xaf\""), want: "close 1007"},
	{name: "half of a surrogate pair", sent: frame(fin|text, "\"\xed\xa0\x80\""), want: "close 1007"},
	{name: "beyond the last character", sent: frame(fin|text, "\"\xf4\x90\x80\x80\""), want: "close 1007"},
	{name: "a character of five bytes", sent: frame(fin|text, "\"\xf8\x88\x80\x80\x80\""), want: "close 1007"},
	{name: "U+FFFE, which is no character", sent: frame(fin|text, asking("\uFFFE")), want: "answer \uFFFE"},
	{name: "wrong bytes in the second fragment", sent: frame(text, "\"\xe2") + frame(fin, "\x28\xa1\""), want: "close 1007"},
	{name: "wrong bytes in a skipped binary message", sent: frame(fin|bytes, "\xff\xfe"), want: "error invalid"},

	// 7: the end
	{name: "a close", sent: closing(1000, ""), want: "close 1000"},
	{name: "a close without a code", sent: frame(fin|closed, ""), want: "close"},
	{name: "a close with a reason", sent: closing(1001, "going away: ü"), want: "close 1001"},
	{name: "a close of 125 bytes", sent: closing(1000, strings.Repeat("x", 123)), want: "close 1000"},
	{name: "a close of 126 bytes", sent: closing(1000, strings.Repeat("x", 124)), want: "close 1002"},
	{name: "a close of one byte", sent: frame(fin|closed, "\x03"), want: "close 1002"},
	{name: "a close whose reason is not UTF-8", sent: closing(1000, "\xff"), want: "close 1007"},
	{name: "a question after a close", sent: closing(1000, "") + frame(fin|text, asking("a")), want: "close 1000"},
	{name: "a ping after a close", sent: closing(1000, "") + frame(fin|ping, "x"), want: "close 1000"},
	{name: "a question before a close", sent: frame(fin|text, asking("a")) + closing(1000, ""), want: "close 1000", maybe: "answer a"},
	{name: "two closes", sent: closing(1000, "") + closing(1001, ""), want: "close 1000"},
	{name: "code 1003", sent: closing(1003, ""), want: "close 1003"},
	{name: "code 1007", sent: closing(1007, ""), want: "close 1007"},
	{name: "code 1011", sent: closing(1011, ""), want: "close 1011"},
	{name: "code 1014", sent: closing(1014, ""), want: "close 1014"},
	{name: "code 3000", sent: closing(3000, ""), want: "close 3000"},
	{name: "code 4999", sent: closing(4999, ""), want: "close 4999"},
	{name: "code 0", sent: closing(0, ""), want: "close 1002"},
	{name: "code 999", sent: closing(999, ""), want: "close 1002"},
	{name: "code 1004", sent: closing(1004, ""), want: "close 1002"},
	{name: "code 1005", sent: closing(1005, ""), want: "close 1002"},
	{name: "code 1006", sent: closing(1006, ""), want: "close 1002"},
	{name: "code 1015", sent: closing(1015, ""), want: "close 1002"},
	{name: "code 2999", sent: closing(2999, ""), want: "close 1002"},
	{name: "code 5000", sent: closing(5000, ""), want: "close 1002"},
	{name: "code 65535", sent: closing(65535, ""), want: "close 1002"},

	// Masks: RFC 6455, section 5.1
	{name: "a text without a mask", sent: "\x81\x01x", want: "close 1002"},
	{name: "a ping without a mask", sent: "\x89\x00", want: "close 1002"},
	{name: "a close without a mask", sent: "\x88\x02\x03\xe8", want: "close 1002"},
	{name: "a mask of zeros", sent: "\x81\x80\x00\x00\x00\x00", want: "error invalid"},
	{name: "bytes of HTTP", sent: "GET / HTTP/1.1\r\n\r\n", want: "close 1002"},
}

// fragments returns a text in fragments of one byte.
func fragments(all string) string {
	var b strings.Builder
	for i := range len(all) {
		first := byte(0)
		if i == 0 {
			first |= text
		}
		if i == len(all)-1 {
			first |= fin
		}
		b.WriteString(frame(first, all[i:i+1]))
	}
	return b.String()
}
