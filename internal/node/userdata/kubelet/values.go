package kubelet

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The names of types in problems.
const (
	TypeText   = "text"
	TypeNumber = "a number"
	TypeTruth  = "true or false"
	TypeList   = "a list"
	TypeTable  = "a table"
)

// TypeName returns the name that problems use for the type of a value from TOML or JSON.
func TypeName(value any) string {
	switch value.(type) {
	case int64, float64:
		return TypeNumber
	case bool:
		return TypeTruth
	case string:
		return TypeText
	case []any:
		return TypeList
	case map[string]any:
		return TypeTable
	}
	return "a date" // the only other type of TOML
}

// IsAddress reports whether the text is an IP address without a zone.
func IsAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Zone() == ""
}

// IsSettingDuration reports whether Bottlerocket accepts the text as a duration of the kubelet: hours, minutes, seconds
// and milliseconds, in this order.
func IsSettingDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return s != "" && durations.MatchString(s) && err == nil
}

// IsThreshold reports whether the kubelet accepts the text as an eviction threshold: an amount, or a percentage below
// 100.
func IsThreshold(s string) bool {
	percent, ok := strings.CutSuffix(s, "%")
	if !ok {
		return Quantities.MatchString(s)
	}
	number, err := strconv.ParseFloat(percent, 64)
	return err == nil && number >= 0 && number < 100
}

// Quantities matches amounts such as "100m" and "1Gi".
var Quantities = regexp.MustCompile(`^[+-]?[0-9.]+(e?[0-9]*|[EPTGMK]i?|[numk])$`)

// CPUSets matches lists of processors such as "0-3,7".
var CPUSets = regexp.MustCompile(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`)

// durations matches hours, minutes, seconds and milliseconds, in this order. It also matches the empty text.
var durations = regexp.MustCompile(`^(([0-9]+\.)?[0-9]+h)?(([0-9]+\.)?[0-9]+m)?(([0-9]+\.)?[0-9]+s)?(([0-9]+\.)?[0-9]+ms)?$`)
