package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// durationWithDays is the value of a flag: a Go duration, optionally with a number of days before it ("1d12h"), or only
// days ("1d").
type durationWithDays time.Duration

// daysPattern matches a number of days, and the duration after it.
var daysPattern = regexp.MustCompile(`^([0-9]+)d(.*)$`)

// String returns the value of the flag.
func (s *durationWithDays) String() string { return time.Duration(*s).String() }

// Type names the kind of value, for the help text.
func (s *durationWithDays) Type() string { return "duration" }

// Set reads the value of the flag.
func (s *durationWithDays) Set(text string) error {
	rest, days := strings.TrimSpace(text), time.Duration(0)
	if match := daysPattern.FindStringSubmatch(rest); match != nil {
		n, err := strconv.ParseInt(match[1], 10, 32)
		if err != nil || n > int64(1<<63-1)/int64(24*time.Hour) { // the maximum of a time.Duration
			return fmt.Errorf("%s days are too many", match[1])
		}
		days, rest = time.Duration(n)*24*time.Hour, match[2]
	}
	if rest == "" && days > 0 {
		*s = durationWithDays(days)
		return nil
	}
	duration, err := time.ParseDuration(rest)
	if err != nil {
		return fmt.Errorf("%q is not a duration", text)
	}
	if days > 0 && (duration < 0 || days+duration < 0) { // the sum overflows
		return fmt.Errorf("%q is not a duration", text)
	}
	*s = durationWithDays(days + duration)
	return nil
}
