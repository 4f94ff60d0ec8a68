package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-sh/joiner/internal/suggest"
)

// flagHint returns a hint with the setting that was probably meant. It ignores everything before the last dot, because
// the user may have copied a path in the chart's values, such as settings.clusterName.
func flagHint(name string, known map[string]setting) string {
	if near := suggest.Nearest(name[strings.LastIndex(name, ".")+1:], slices.Collect(maps.Keys(known))); near != "" {
		return fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return ""
}

// durationHint returns a hint for a duration without unit, in days, or with a word as unit.
func durationHint(s string) string {
	if days, err := strconv.Atoi(strings.TrimSuffix(s, "d")); err == nil && strings.HasSuffix(s, "d") && days < 1000 {
		return fmt.Sprintf(" (did you mean %dh?)", 24*days)
	}
	if m := unitWord.FindStringSubmatch(strings.ToLower(s)); m != nil {
		return " (did you mean " + m[1] + m[2] + "?)"
	}
	if _, err := time.ParseDuration(s + "s"); err == nil {
		return " (did you mean " + s + "s?)"
	}
	return ""
}

// unitWord matches a duration whose unit is a word, or follows a blank: 10 sec, 5min, 2 hours.
var unitWord = regexp.MustCompile(`^(\d+(?:\.\d+)?) ?([smh])(?:|ecs?|econds?|ins?|inutes?|rs?|ours?)$`)

func booleanHint(s string) string {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "yes", "y", "on", "enabled":
		return " (did you mean true?)"
	case "no", "n", "off", "disabled":
		return " (did you mean false?)"
	}
	return suggest.Hint(s, []string{"true", "false"})
}

// wordHint returns a hint with the most similar word. The hint for the log level warn is info, which includes warnings.
func wordHint(s string, words []string) string {
	if strings.HasPrefix(strings.ToLower(s), "warn") && slices.Contains(words, "info") {
		return " (did you mean info? it includes warnings)"
	}
	return suggest.Hint(s, words)
}

// gateHint returns a hint with the feature gate that was probably meant. For NAME:STATE, the hint is NAME=STATE.
func gateHint(name string, known []string) string {
	plain, state, isSet := strings.Cut(name, ":")
	near := suggest.Nearest(plain, known)
	switch {
	case near == "":
		return ""
	case isSet:
		return fmt.Sprintf(" (did you mean %s=%s?)", near, strings.TrimSpace(state))
	}
	return " (did you mean " + near + "?)"
}

// addressHint returns a hint for an address with a port, or for localhost.
func addressHint(s string) string {
	if s == "localhost" {
		return " (did you mean 127.0.0.1?)"
	}
	if withPort, err := netip.ParseAddrPort(s); err == nil {
		return fmt.Sprintf(" (did you mean %s? the ports are separate settings)", withPort.Addr())
	}
	return ""
}

// originHint returns a hint with only the scheme and host of a URL; none if the URL has its scheme twice.
func originHint(u *url.URL) string {
	host, err := url.Parse(u.Scheme + "://" + u.Host)
	if err != nil || host.Hostname() == "https" || host.Hostname() == "http" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s://%s?)", u.Scheme, u.Host)
}

// mebibytesHint returns a hint with n mebibytes in bytes, if they are between 64 MiB and 1 TiB.
func mebibytesHint(n int64) string {
	if n < 64 || n > 1<<20 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %d?)", n<<20)
}

// numberHint returns a hint with the whole number in the range that is nearest to s; none if s is no number.
func numberHint(s string, minimum, maximum int) string {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return ""
	}
	return fmt.Sprintf(" (did you mean %.0f?)", min(max(f, float64(minimum)), float64(maximum)))
}

// bytesHint returns a hint with the number of bytes, for sizes with a unit: 1Gi, 512MiB, 2 GB.
func bytesHint(s string) string {
	m := regexp.MustCompile(`(?i)^(\d+)\s*([kmgt])(i?)b?$`).FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return ""
	}
	unit := int64(1000)
	if m[3] != "" {
		unit = 1024
	}
	for range strings.Index("kmgt", strings.ToLower(m[2])) + 1 {
		n *= unit
	}
	return fmt.Sprintf(" (did you mean %d?)", n)
}

// fractionHint returns a hint with a fraction, for percentages ("7.5", "7.5%") and decimal commas ("0,075").
func fractionHint(s string) string {
	if f, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64); err == nil && strings.Contains(s, ",") && f > 0 && f < 1 {
		return fmt.Sprintf(" (did you mean %s?)", strconv.FormatFloat(f, 'f', -1, 64))
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(s, "%")), 64)
	if err != nil || !(f > 0 && f < 100) {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", strconv.FormatFloat(f/100, 'f', -1, 64))
}

// clusterName returns a parser of the name of an EKS cluster: up to 100 letters, digits, hyphens and underscores.
func clusterName(to *string) func(string) error {
	name := regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)
	return func(s string) error {
		if !name.MatchString(s) {
			return fmt.Errorf("want the name of an EKS cluster, which has letters, digits, hyphens and underscores%s", lastPartHint(s, "/", name))
		}
		*to = s
		return nil
	}
}

// queue returns a parser of the name of an SQS queue: up to 80 letters, digits, hyphens and underscores, optionally
// followed by .fifo.
func queue(to *string) func(string) error {
	name := regexp.MustCompile(`^[0-9A-Za-z_-]{1,80}(\.fifo)?$`)
	return func(s string) error {
		if s != "" && !name.MatchString(s) {
			return fmt.Errorf("want the name of the queue, not its URL or ARN%s", lastPartHint(s, "/:", name))
		}
		*to = s
		return nil
	}
}

// lastPartHint returns a hint with the last part of an ARN, URL or path, if it is a valid name.
func lastPartHint(s, separators string, name *regexp.Regexp) string {
	last := s[strings.LastIndexAny(s, separators)+1:]
	if last == s || !name.MatchString(last) {
		return ""
	}
	return " (did you mean " + last + "?)"
}

// schemeHint returns a hint for a host without scheme.
func schemeHint(s string) string {
	if u, err := url.Parse("https://" + s); err == nil && strings.Contains(u.Hostname(), ".") && strings.Trim(u.Path, "/") == "" {
		return " (did you mean https://" + u.Host + "?)"
	}
	return ""
}

// objectName returns a parser of the name of a Kubernetes object: lower-case letters, digits, hyphens and dots; empty
// is allowed.
func objectName(to *string) func(string) error {
	name := regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	return func(s string) error {
		if s == "" || name.MatchString(s) {
			*to = s
			return nil
		}
		hint := ""
		if corrected := strings.ReplaceAll(strings.ToLower(s), "_", "-"); name.MatchString(corrected) {
			hint = " (did you mean " + corrected + "?)"
		}
		return fmt.Errorf("want the name of a Kubernetes object, which has lower-case letters, digits, hyphens and dots%s", hint)
	}
}

// namespace returns a parser of the name of a namespace: an object name without dots and of at most 63 characters.
func namespace(to *string) func(string) error {
	return func(s string) error {
		if strings.Contains(s, ".") || len(s) > 63 {
			return errors.New("want the name of a namespace, which has lower-case letters, digits and hyphens, at most 63")
		}
		return objectName(to)(s)
	}
}

// regionName matches AWS regions: us-east-1, us-gov-west-1, eusc-de-east-1.
var regionName = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-\d+$`)

// region returns a parser of the name of an AWS region. It checks only the syntax, because there is no complete list of
// regions.
func region(to *string) func(string) error {
	return func(s string) error {
		switch withoutZone := strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), "abcdefghijklmnopqrstuvwxyz"); {
		case s == "" || regionName.MatchString(s):
			*to = s
			return nil
		case regionName.MatchString(strings.ToLower(s)):
			return fmt.Errorf("want an AWS region, in lower case (did you mean %s?)", strings.ToLower(s))
		case regionName.MatchString(strings.ReplaceAll(strings.ToLower(s), "_", "-")):
			return fmt.Errorf("want an AWS region, with hyphens (did you mean %s?)", strings.ReplaceAll(strings.ToLower(s), "_", "-"))
		case regionName.MatchString(withoutZone):
			return fmt.Errorf("want an AWS region, not a zone (did you mean %s?)", withoutZone)
		}
		return errors.New("want an AWS region, for instance us-east-1")
	}
}

// regionOf returns the region in an endpoint of EKS; empty for any other URL.
func regionOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	if !strings.HasSuffix(host, ".amazonaws.com") && !strings.HasSuffix(host, ".amazonaws.com.cn") && !strings.HasSuffix(host, ".api.aws") {
		return ""
	}
	for _, label := range strings.Split(host, ".") {
		if regionName.MatchString(label) {
			return label
		}
	}
	return ""
}
