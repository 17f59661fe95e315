package command

import "testing"

func TestWhatCannotBeSeenIsEscaped(t *testing.T) {
	for _, c := range []struct{ text, inOneLine, inLines string }{
		{"plain 日本 naïve", "plain 日本 naïve", "plain 日本 naïve"},
		{"a\n\tb\r", `a\n\tb\r`, "a\n\tb\\r"},
		{"\x1b[2J\x07\x7f\u009b", `\x1b[2J\x07\x7f\u009b`, `\x1b[2J\x07\x7f\u009b`},
		{"\u202e\u2066\u061c\u200b\u2028\ufeff", `\u202e\u2066\u061c\u200b\u2028\ufeff`, `\u202e\u2066\u061c\u200b\u2028\ufeff`},
		{"\U000e0041\U000e0101\u3164", `\U000e0041\U000e0101\u3164`, `\U000e0041\U000e0101\u3164`},
		{"rm\u200d r\ufe0fm аб\u200cв", `rm\u200d r\ufe0fm аб\u200cв`, `rm\u200d r\ufe0fm аб\u200cв`},
		{"👩\u200d💻 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥 می\u200cخواهم क्\u200dष", "👩\u200d💻 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥 می\u200cخواهم क्\u200dष", "👩\u200d💻 1\ufe0f\u20e3 ❤\ufe0f\u200d🔥 می\u200cخواهم क्\u200dष"},
		{"👩\u200d\u200d💻", "👩\u200d\\u200d💻", "👩\u200d\\u200d💻"},
		{"bad \xff\x9b utf \ufffd", "bad \ufffd utf \ufffd", "bad \ufffd utf \ufffd"},
	} {
		if got := visible(c.text); got != c.inOneLine {
			t.Errorf("%+q: got %+q, want %+q", c.text, got, c.inOneLine)
		}
		if got := visibleLines(c.text); got != c.inLines {
			t.Errorf("%+q in lines: got %+q, want %+q", c.text, got, c.inLines)
		}
		if got := visible(visible(c.text)); got != c.inOneLine {
			t.Errorf("%+q twice: got %+q, want %+q", c.text, got, c.inOneLine)
		}
	}
	if got, want := jsonText([]byte("{\"a\":\"\u202e\U000e0041\"}\n")), `{"a":"\u202e\udb40\udc41"}`+"\n"; got != want {
		t.Errorf("JSON: got %s, want %s", got, want)
	}
}

func TestAQuotedWordIsOneWordOfAShellAndNoCommand(t *testing.T) {
	for word, want := range map[string]string{
		"":                  `""`,
		"a-b_c.d:e/f@g":     "a-b_c.d:e/f@g",
		"größe":             "größe",
		"a b":               `"a b"`,
		`a"b`:               `"a\"b"`,
		"it's":              `"it's"`,
		"$(rm -rf ~)":       `$'$(rm -rf ~)'`,
		"`reboot`'s":        "$'`reboot`\\'s'",
		`a\b!`:              `$'a\\b!'`,
		"a\x1b[2Jb\n\u202e": `$'a\x1b[2Jb\n\u202e'`,
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
