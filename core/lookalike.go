package core

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalike returns why an id could be taken for another one, as the end of a sentence, or "":
// it is not in the normal form C, has characters that nobody sees or that change the direction
// of writing, or letters of several scripts (Unicode Technical Standard 39, section 5.2: one
// script, or those of Chinese, Japanese or Korean with Latin).
func lookalike(id string) string {
	if isASCII(id) {
		return ""
	}
	if !norm.NFC.IsNormalString(id) {
		return "is not in Unicode's normal form C: send " + norm.NFC.String(id)
	}
	var seen scripts
	for _, r := range id {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Co):
			return "has characters that cannot be seen: remove them"
		case unicode.IsLetter(r):
			seen.add(r)
		}
	}
	if seen.mixed() {
		return "has letters of several scripts, some of which look like others: use those of one"
	}
	return ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// scripts are the scripts of the letters of a text.
type scripts struct {
	latin, han, kana, hangul, bopomofo bool
	other                              *unicode.RangeTable // the first of the others
	several                            bool                // there are more of those
}

func (s *scripts) add(r rune) {
	switch {
	case unicode.Is(unicode.Latin, r):
		s.latin = true
	case unicode.Is(unicode.Han, r):
		s.han = true
	case unicode.In(r, unicode.Hiragana, unicode.Katakana):
		s.kana = true
	case unicode.Is(unicode.Hangul, r):
		s.hangul = true
	case unicode.Is(unicode.Bopomofo, r):
		s.bopomofo = true
	case unicode.In(r, unicode.Common, unicode.Inherited), s.other != nil && unicode.Is(s.other, r):
	case s.other != nil:
		s.several = true
	default:
		for _, table := range unicode.Scripts {
			if unicode.Is(table, r) {
				s.other = table
				return
			}
		}
	}
}

// mixed reports whether the scripts are not written together.
func (s *scripts) mixed() bool {
	east := 0
	for _, has := range [...]bool{s.kana, s.hangul, s.bopomofo} {
		if has {
			east++
		}
	}
	return s.several || s.other != nil && (s.latin || s.han || east > 0) || east > 1
}
