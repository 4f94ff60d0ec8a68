package bottlerocket

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/joiner-sh/joiner/internal/node/userdata"
	"github.com/joiner-sh/joiner/internal/node/userdata/kubelet"
)

// reportContradictions reports Kubernetes settings that contradict each other: Bottlerocket accepts them, but the
// kubelet does not start.
func (c *settingsCheck) reportContradictions(settings map[string]any) {
	kubernetes, _ := settings["kubernetes"].(map[string]any)
	soft, _ := kubernetes["eviction-soft"].(map[string]any)
	periods, _ := kubernetes["eviction-soft-grace-period"].(map[string]any)
	var withoutPeriod []string // signals of eviction-soft
	for signal := range soft {
		if periods[signal] == nil && slices.Contains(strings.Fields(kubelet.Signals), signal) {
			withoutPeriod = append(withoutPeriod, signal)
		}
	}
	slices.Sort(withoutPeriod)
	grace, _ := kubernetes["shutdown-grace-period"].(string)
	critical, _ := kubernetes["shutdown-grace-period-for-critical-pods"].(string)
	if total, part := kubelet.DurationOf(grace), kubelet.DurationOf(critical); part > total {
		c.r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins,
			c.positionOf("settings.kubernetes.shutdown-grace-period-for-critical-pods"),
			"settings.kubernetes.shutdown-grace-period-for-critical-pods (%s) must be at most shutdown-grace-period (%s); as it is, the kubelet does not start", part, total).
			Suggest("raise shutdown-grace-period, which includes shutdown-grace-period-for-critical-pods", "")
	}
	if len(withoutPeriod) > 0 {
		c.r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, c.positionOf("settings.kubernetes.eviction-soft"),
			"settings.kubernetes.eviction-soft%s has no grace period; as it is, the kubelet does not start",
			userdata.InParentheses(withoutPeriod[0])).
			Suggest("write it into settings.kubernetes.eviction-soft-grace-period", "")
	}
}

// rule checks one value of Bottlerocket's settings. name is the value's name in problems, path is its path.
type rule func(c *settingsCheck, name, path string, value any)

// settingsCheck reports settings that Bottlerocket rejects.
type settingsCheck struct {
	r         *userdata.Reader
	positions map[string]userdata.Position // positions of settings, by path
}

// reject reports a value that makes Bottlerocket reject all settings. The text is format with args. fix may be empty.
func (c *settingsCheck) reject(path, fix, format string, args ...any) {
	c.r.Report(userdata.SettingInvalid, userdata.Certain, userdata.NeverJoins, c.positionOf(path),
		format+": Bottlerocket would apply none of the settings", args...).Suggest(fix, "")
}

func (c *settingsCheck) positionOf(path string) userdata.Position {
	return kubelet.PositionAbove(c.positions, path)
}

func (c *settingsCheck) rejectType(name, path, want string, value any) {
	got, fix := kubelet.TypeName(value), ""
	if want == kubelet.TypeText && (got == kubelet.TypeNumber || got == kubelet.TypeTruth) {
		fix = "write the value in quotes"
	}
	if got == kubelet.TypeText && (want == kubelet.TypeNumber || want == kubelet.TypeTruth) {
		fix = "write the value without quotes"
	}
	c.reject(path, fix, "%s must be %s, but is %s", name, want, got)
}

func anything(*settingsCheck, string, string, any) {}

// textThat accepts text for which ok returns true. form describes such text.
func textThat(form string, ok func(string) bool) rule {
	return func(c *settingsCheck, name, path string, value any) {
		s, isText := value.(string)
		switch {
		case !isText:
			c.rejectType(name, path, kubelet.TypeText, value)
		case !ok(s):
			c.reject(path, "", "%s must be %s", name, form)
		}
	}
}

// oneOf accepts the texts in list, which are separated by blanks.
func oneOf(list string) rule {
	words := strings.Fields(list)
	return func(c *settingsCheck, name, path string, value any) {
		s, isText := value.(string)
		switch {
		case !isText:
			c.rejectType(name, path, kubelet.TypeText, value)
		case !slices.Contains(words, s):
			fix := ""
			if near := userdata.Nearest(s, words); near != "" {
				fix = "write " + near
			}
			c.reject(path, fix, "%s must be one of %s", name, strings.Join(words, ", "))
		}
	}
}

func integer(least, most int64) rule {
	return func(c *settingsCheck, name, path string, value any) {
		n, ok := value.(int64)
		switch f, isFloat := value.(float64); {
		case isFloat:
			c.reject(path, "", "%s must be a whole number, but is %v", name, f)
		case !ok:
			c.rejectType(name, path, kubelet.TypeNumber, value)
		case n < least || n > most:
			c.reject(path, "", "%s must be a number from %d to %d", name, least, most)
		}
	}
}

func boolean(c *settingsCheck, name, path string, value any) {
	if _, ok := value.(bool); !ok {
		c.rejectType(name, path, kubelet.TypeTruth, value)
	}
}

func listOf(element rule) rule {
	return func(c *settingsCheck, name, path string, value any) {
		list, ok := value.([]any)
		if !ok {
			c.rejectType(name, path, kubelet.TypeList, value)
			return
		}
		for _, entry := range list {
			element(c, "an entry of "+strings.TrimPrefix(name, "an entry of "), path, entry)
		}
	}
}

// oneOrList accepts a value that satisfies the rule, or a list of such values.
func oneOrList(element rule) rule {
	return func(c *settingsCheck, name, path string, value any) {
		if _, ok := value.([]any); ok {
			listOf(element)(c, name, path, value)
			return
		}
		element(c, name, path, value)
	}
}

// fields accepts tables that have all required keys, and only keys of known.
func fields(known map[string]rule, required ...string) rule {
	return func(c *settingsCheck, name, path string, value any) {
		table, ok := value.(map[string]any)
		if !ok {
			c.rejectType(name, path, kubelet.TypeTable, value)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			below := path + "." + key
			if check, ok := known[key]; ok {
				check(c, name+"."+key, below, table[key])
				continue
			}
			reportUnknownSetting(c.r, below, key, slices.Sorted(maps.Keys(known)), c.positionOf(below))
		}
		for _, key := range required {
			if _, ok := table[key]; !ok {
				c.reject(path, "", "%s lacks %s", name, key)
			}
		}
	}
}

// keyed accepts tables whose keys satisfy keyOK and whose values satisfy entry. keyForm describes a valid key.
func keyed(keyForm string, keyOK func(string) bool, entry rule) rule {
	return func(c *settingsCheck, name, path string, value any) {
		table, ok := value.(map[string]any)
		if !ok {
			c.rejectType(name, path, kubelet.TypeTable, value)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			below, entryName := path+"."+key, "an entry of "+name
			if isQuotableKey(key) {
				entryName = name + "." + key
			}
			if !keyOK(key) {
				c.reject(below, "", "a key%s of %s must be %s", userdata.InParentheses(key), name, keyForm)
				continue
			}
			entry(c, entryName, below, table[key])
		}
	}
}

// isQuotableKey reports whether a key may be quoted in a problem: IsQuotable accepts it, or it is the name of a sysctl.
func isQuotableKey(key string) bool {
	if userdata.IsQuotable(key) {
		return true
	}
	area, _, ok := strings.Cut(strings.ReplaceAll(key, "/", "."), ".")
	return ok && slices.Contains(sysctlAreas, area) && len(key) <= 80 && sysctls.MatchString(key)
}

// sysctlAreas are the first words of sysctl names.
var sysctlAreas = []string{"abi", "debug", "dev", "fs", "kernel", "net", "user", "vm"}

var tableOfTexts = keyed("text", func(string) bool { return true }, oneLine)

// Rules for one value that is text.
var (
	oneLine    = textThat("one line of text", func(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) })
	freeText   = textThat("text", func(string) bool { return true })
	base64Text = textThat("base64", isBase64)
	address    = textThat("an IP address", kubelet.IsAddress)
	hostName   = textThat("a host name in lower case", isHostName)
	urlOrHost  = textThat("a URL or a host", isURLOrHost)
	quantity   = textThat(`an amount such as "100m" or "1Gi"`, kubelet.Quantities.MatchString)
	duration   = textThat(`a duration such as "30s" or "1m30s"`, kubelet.IsSettingDuration)
	threshold  = textThat(`an amount or a percentage such as "5%"`, kubelet.IsThreshold)
	version    = textThat(`"latest" or a version such as "1.46.0"`, func(s string) bool { return s == "latest" || versions.MatchString(s) })
	processors = textThat(`processors such as "0-3,7"`, kubelet.CPUSets.MatchString)
)

// Patterns of the values and keys of several rules, from modeled-types of bottlerocket-settings-sdk.
var (
	versions    = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)
	hostNames   = regexp.MustCompile(`^[0-9a-z.-]{1,253}$`)
	sysctls     = regexp.MustCompile(`^[a-zA-Z0-9_-][a-zA-Z0-9./_-]{0,127}$`)
	modules     = regexp.MustCompile(`^[a-zA-Z0-9_-]{0,56}$`)
	bootKeys    = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*$`)
	identifiers = regexp.MustCompile(`^[a-zA-Z0-9-]{0,76}$`)
	pageSizes   = regexp.MustCompile(`^[1-9][0-9]*[KMGT]i$`)
	tokens      = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	gpuModels   = regexp.MustCompile(`^[a-z][a-z0-9-]*\.[0-9]+gb$`)
	migProfiles = regexp.MustCompile(`^([1-7]|[0-9]g\.[0-9]+gb[a-z0-9.+-]*)$`)
	schemes     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
	pageCounts  = regexp.MustCompile(`^([0-9]+|[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)$`)
)

// isBase64 reports whether a text is base64 on one line. DecodeString ignores line breaks.
func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil && !strings.ContainsAny(s, "\r\n")
}

// isHostName reports whether Bottlerocket accepts a text as a host name. Upper case is not accepted.
func isHostName(s string) bool {
	if !hostNames.MatchString(s) {
		return false
	}
	for _, part := range strings.Split(s, ".") {
		if part == "" || len(part) > 63 || part[0] == '-' {
			return false
		}
	}
	return true
}

// isURLOrHost reports whether Bottlerocket accepts a text as a URL or a host. The text must not contain blanks, except
// at its ends. A text that begins with a scheme outside webSchemes is always accepted, because it may be a host with a
// port, such as "proxy:3128". Any other text needs a host.
func isURLOrHost(s string) bool {
	s = strings.Trim(s, " ")
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || c == ' ' }) {
		return false
	}
	if scheme := strings.ToLower(schemes.FindString(s)); scheme != "" && !slices.Contains(webSchemes, scheme) {
		return true
	} else if scheme != "" {
		s = s[len(scheme):]
	}
	s = strings.TrimLeft(s, "/")
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	u, err := url.Parse("http://" + s[strings.LastIndexByte(s, '@')+1:])
	return err == nil && u.Hostname() != ""
}

// webSchemes are the schemes of URLs that need a host.
var webSchemes = []string{"ftp:", "http:", "https:", "ws:", "wss:"}

func percentage(c *settingsCheck, name, path string, value any) {
	n, ok := value.(int64)
	if s, isText := value.(string); isText {
		parsed, err := strconv.ParseInt(s, 10, 32)
		n, ok = parsed, err == nil
	}
	if !ok || n < 0 || n > 100 {
		c.reject(path, "", "%s must be a number from 0 to 100", name)
	}
}

// chunkSize accepts a number of bytes, or any text, because the text may be a size with a unit.
func chunkSize(c *settingsCheck, name, path string, value any) {
	switch value.(type) {
	case int64, string:
	default:
		c.rejectType(name, path, `a size such as "8mb"`, value)
	}
}

// ociLimit accepts a limit of the OCI runtime: a number, where -1 stands for unlimited, or "unlimited".
func ociLimit(c *settingsCheck, name, path string, value any) {
	switch v := value.(type) {
	case int64:
		if v < -1 {
			c.reject(path, "", `%s must be a number or "unlimited"`, name)
		}
	case string:
		if v != "unlimited" {
			c.reject(path, `write "unlimited", or a number without quotes`, `%s must be a number or "unlimited"`, name)
		}
	default:
		c.rejectType(name, path, `a number or "unlimited"`, value)
	}
}

const (
	int32Max  = math.MaxInt32
	int32Min  = math.MinInt32
	uint32Max = math.MaxUint32
)

// describe returns the first eight words of a list and the number of further words, for the text of a problem.
func describe(list []string) string {
	if len(list) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:8], ", "), len(list)-8)
	}
	return strings.Join(list, ", ")
}
