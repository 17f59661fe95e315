package config

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What may be written for a time and for a size, as errors say it.
const (
	TimeForms = "30s, 1h30m, 7d or 2w"
	SizeForms = "1GiB, 512MiB, 10MB or 64k"
)

// inWeeksAndDays matches a time that begins with weeks or days, units that the time package lacks.
var inWeeksAndDays = regexp.MustCompile(`^(?:([0-9]{1,5})w)?(?:([0-9]{1,6})d)?([0-9.].*)?$`)

// day is the unit that times are written in from there on.
const day = 24 * time.Hour

// ParseTime parses a duration, which may begin with weeks and days: 30s, 1h30m, 7d, 1d12h, 2w.
func ParseTime(text string) (time.Duration, bool) {
	m := inWeeksAndDays.FindStringSubmatch(text)
	if len(m) == 0 || m[1] == "" && m[2] == "" {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	weeks, _ := strconv.Atoi("0" + m[1]) // the expression matches digits
	days, _ := strconv.Atoi("0" + m[2])
	if days += 7 * weeks; days > int(math.MaxInt64/day) {
		return 0, false
	}
	rest := time.Duration(0)
	if m[3] != "" {
		var err error
		if rest, err = time.ParseDuration(m[3]); err != nil {
			return 0, false
		}
	}
	whole := time.Duration(days) * day
	return whole + rest, whole <= math.MaxInt64-rest
}

// FormatTime formats a duration as [ParseTime] reads it, with days and without parts that are zero:
// 7d, 1d12h, 1h30m, 30s.
func FormatTime(d time.Duration) string {
	text := ""
	if d >= day {
		text = strconv.FormatInt(int64(d/day), 10) + "d"
		if d %= day; d == 0 {
			return text
		}
	}
	rest := d.String()
	if strings.HasSuffix(rest, "m0s") {
		rest = strings.TrimSuffix(rest, "0s")
	}
	if strings.HasSuffix(rest, "h0m") {
		rest = strings.TrimSuffix(rest, "0m")
	}
	return text + rest
}

// inUnits matches a number of bytes, maybe with a unit: a power of 1000 (k, kB, M, MB, G, GB, T, TB) or of 1024 (Ki, KiB
// and so on), in any case.
var inUnits = regexp.MustCompile(`^([0-9]{1,18})(?:\.([0-9]{1,9}))?(?: ?(?i:([KMGT])(i)?B?|B))?$`)

// ParseSize parses a number of bytes: 1GiB, 512MiB, 10MB, 64k, 1.5 GB, 1000000. Parts of a byte
// are left out.
func ParseSize(text string) (int64, bool) {
	m := inUnits.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	step, unit := int64(1000), int64(1)
	if m[4] != "" {
		step = 1024
	}
	for range strings.Index("KMGT", strings.ToUpper(m[3])) + len(m[3]) {
		unit *= step
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // the expression matches what fits, here and below
	if n > math.MaxInt64/unit-1 {
		return 0, false
	}
	part, parts := int64(0), int64(1)
	for _, digit := range m[2] {
		part, parts = 10*part+int64(digit-'0'), 10*parts
	}
	return n*unit + unit/parts*part + unit%parts*part/parts, unit > 1 || m[2] == ""
}

// FormatSize formats a number of bytes as [ParseSize] reads it, exactly: in the largest unit that needs no decimals,
// or as the number alone.
func FormatSize(n int64) string {
	text := strconv.FormatInt(n, 10)
	for _, step := range []struct {
		by    int64
		names []string
	}{{1000, []string{"kB", "MB", "GB", "TB"}}, {1024, []string{"KiB", "MiB", "GiB", "TiB"}}} {
		left, name := n, ""
		for i := 0; left != 0 && left%step.by == 0 && i < len(step.names); i++ {
			left, name = left/step.by, step.names[i]
		}
		if shorter := strconv.FormatInt(left, 10) + name; name != "" && left < 1_000_000 && len(shorter) <= len(text) {
			text = shorter
		}
	}
	return text
}

// ExpandHome replaces ~ at the beginning of a path by the home directory.
func ExpandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("nobody knows what ~ is here, since HOME is not set: write the whole path")
	}
	return home + path[1:], nil
}

// TimeValue is a flag with a time for ParseTime, which is not negative.
type TimeValue time.Duration

// Set implements pflag.Value.
func (t *TimeValue) Set(text string) error {
	d, ok := ParseTime(text)
	if !ok || d < 0 {
		return errors.New("not a time")
	}
	*t = TimeValue(d)
	return nil
}

// Type implements pflag.Value.
func (*TimeValue) Type() string { return "duration" }

// String implements pflag.Value. A zero default is not shown.
func (t *TimeValue) String() string {
	if *t == 0 {
		return ""
	}
	return FormatTime(time.Duration(*t))
}

// Time is a duration in a list of objects.
type Time time.Duration

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) { return []byte(FormatTime(time.Duration(t))), nil }

// Size is a number of bytes in a list of objects.
type Size int64
