package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The limits of a command, in UTF-16 code units unless they count something else.
const (
	MaxID           = 256
	MaxPath         = 4096
	MaxMessage      = 200_000
	maxBash         = 20_000
	maxName         = 256
	maxDependencies = 32  // ids
	maxHistory      = 500 // entries
)

// NotBlank is the problem of an optional string that is blank, or no string.
const NotBlank = "Must be a non-empty string if provided"

var (
	typeName        = ofKind(strictjson.String, "Command must have a string 'type' field")
	requiredBoolean = ofKind(strictjson.Bool, "Required boolean")
	requiredObject  = ofKind(strictjson.Object, "Required object")
	optionalString  = optional(ofKind(strictjson.String, "Must be a string if provided"))
	optionalBoolean = optional(ofKind(strictjson.Bool, "Must be a boolean if provided"))
	optionalObject  = optional(ofKind(strictjson.Object, "Must be an object if provided"))

	notBlank  = optional(text(NotBlank, notBlankText))
	identity  = first(notBlank, upTo(MaxID))
	sessionID = text("Required non-empty string", notBlankText)
	threadID  = first(notBlank, text(fmt.Sprintf("Too long (max %d bytes)", core.MaxIDBytes),
		func(s string) bool { return len(s) <= core.MaxIDBytes }))
	sessionPath = first(required,
		text(fmt.Sprintf("sessionPath too long (max %d chars)", MaxPath), func(s string) bool { return Units(s) <= MaxPath }),
		text("sessionPath contains potentially dangerous path components", func(s string) bool {
			return !strings.Contains(s, "..") && !strings.HasPrefix(s, "~") && !strings.Contains(s, "\x00")
		}))
	noControls = text("Must not contain control characters", func(s string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool { return r <= 31 || r == 127 })
	})
	requestID = text("Must contain only alphanumeric characters, colons, underscores, and dashes",
		regexp.MustCompile(`^[a-zA-Z0-9:_-]*$`).MatchString)
	timestamp = natural("Must be a non-negative integer timestamp")
)

// optional applies a rule to values that are present.
func optional(r rule) rule {
	return func(v strictjson.Value) string {
		if !v.Exists() {
			return ""
		}
		return r(v)
	}
}

// first reports the first problem that rules find.
func first(rules ...rule) rule {
	return func(v strictjson.Value) string {
		for _, r := range rules {
			if problem := r(v); problem != "" {
				return problem
			}
		}
		return ""
	}
}

// ofKind accepts values of one kind.
func ofKind(kind strictjson.Kind, problem string) rule {
	return func(v strictjson.Value) string {
		if v.Kind() != kind {
			return problem
		}
		return ""
	}
}

// text accepts strings that ok accepts. A value that is no string counts as "".
func text(problem string, ok func(string) bool) rule {
	return func(v strictjson.Value) string {
		if s, _ := v.Text(); !ok(s) {
			return problem
		}
		return ""
	}
}

// required accepts strings that are not empty.
func required(v strictjson.Value) string {
	if v.Kind() != strictjson.String || len(v.Raw()) == len(`""`) {
		return "Required string"
	}
	return ""
}

// upTo accepts strings of at most most code units.
func upTo(most int) rule {
	short := text(fmt.Sprintf("Too long (max %d chars)", most), func(s string) bool { return Units(s) <= most })
	return func(v strictjson.Value) string {
		if len(v.Raw()) <= most { // a unit takes at least a byte
			return ""
		}
		return short(v)
	}
}

// oneOf accepts the texts given.
func oneOf(problem string, texts ...string) rule {
	return text(problem, func(s string) bool { return slices.Contains(texts, s) })
}

// natural accepts whole numbers from 0, and no value.
func natural(problem string) rule {
	return optional(func(v strictjson.Value) string {
		if n, ok := whole(v); !ok || n < 0 {
			return problem
		}
		return ""
	})
}

func historyCount(v strictjson.Value) string {
	switch n, ok := whole(v); {
	case !ok:
		return "Must be an integer if provided"
	case n < 1 || n > maxHistory:
		return fmt.Sprintf("Must be between 1 and %d", maxHistory)
	}
	return ""
}

// notBlankText reports whether a string has more than white space.
func notBlankText(s string) bool { return strings.TrimSpace(s) != "" }

// Units counts UTF-16 code units.
func Units(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}
