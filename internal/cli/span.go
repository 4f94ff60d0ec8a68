package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// span is the duration of a flag: a Go duration, optionally with days before it: "1d12h".
type span time.Duration

// days matches the days before a duration.
var days = regexp.MustCompile(`^([0-9]+)d(.*)$`)

// String returns the value of the flag.
func (s *span) String() string { return time.Duration(*s).String() }

// Type names the kind of value, for the help text.
func (s *span) Type() string { return "duration" }

// Set reads the value of the flag.
func (s *span) Set(text string) error {
	rest, whole := strings.TrimSpace(text), time.Duration(0)
	if match := days.FindStringSubmatch(rest); match != nil {
		n, err := strconv.ParseInt(match[1], 10, 32)
		if err != nil || n > int64(1<<63-1)/int64(24*time.Hour) {
			return fmt.Errorf("%s days are too many", match[1])
		}
		whole, rest = time.Duration(n)*24*time.Hour, match[2]
	}
	if rest == "" && whole > 0 {
		*s = span(whole)
		return nil
	}
	part, err := time.ParseDuration(rest)
	if err != nil {
		return fmt.Errorf("%q is not a duration", text)
	}
	if whole > 0 && (part < 0 || whole+part < 0) {
		return fmt.Errorf("%q is not a duration", text)
	}
	*s = span(whole + part)
	return nil
}
