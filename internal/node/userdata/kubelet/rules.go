package kubelet

import (
	"maps"
	"slices"
	"time"

	"github.com/joiner-sh/joiner/internal/node/userdata"
)

// forever is the longest duration, for durations without a maximum.
const forever = time.Duration(1<<63 - 1)

// durationBounds maps a field to the minimum and the maximum of its duration.
// Source: pkg/kubelet/apis/config/validation of k8s.io/kubernetes.
var durationBounds = map[string][2]time.Duration{
	"containerLogMonitorInterval":                {3 * time.Second, forever},
	"crashLoopBackOff.maxContainerRestartPeriod": {time.Second, 5 * time.Minute},
	"imageMinimumGCAge":                          {0, forever},
	"imageMaximumGCAge":                          {0, forever},
}

func (c *configCheck) reportContradictions() {
	c.checkAges()
	c.checkEnforcement()
	c.checkPulls()
	high, hasHigh := c.start.Config["imageGCHighThresholdPercent"].(float64)
	if low, hasLow := c.start.Config["imageGCLowThresholdPercent"].(float64); hasLow && hasHigh && low >= high {
		c.reject("imageGCLowThresholdPercent", "", "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent")
	}
	soft, _ := c.start.Config["evictionSoft"].(map[string]any)
	periods, _ := c.start.Config["evictionSoftGracePeriod"].(map[string]any)
	for _, signal := range slices.Sorted(maps.Keys(soft)) {
		if periods[signal] == nil {
			c.reject("evictionSoft", "write it into evictionSoftGracePeriod", "evictionSoft%s has no grace period",
				userdata.InParentheses(signal))
		}
	}
}

// period returns a duration of the configuration; false: the field is missing or invalid.
func (c *configCheck) period(field string) (time.Duration, bool) {
	s, ok := c.start.Config[field].(string)
	d, err := time.ParseDuration(s)
	return d, ok && err == nil
}

// checkAges reports invalid or contradictory grace periods of a shutdown, and contradictory ages of images.
func (c *configCheck) checkAges() {
	grace, _ := c.period("shutdownGracePeriod")
	if critical, ok := c.period("shutdownGracePeriodCriticalPods"); ok && critical > grace {
		c.reject("shutdownGracePeriodCriticalPods", "raise shutdownGracePeriod, which includes shutdownGracePeriodCriticalPods",
			"shutdownGracePeriodCriticalPods (%s) must be at most shutdownGracePeriod (%s)", critical, grace)
	}
	for _, field := range []string{"shutdownGracePeriod", "shutdownGracePeriodCriticalPods"} {
		if d, ok := c.period(field); ok && (d < 0 || d > 0 && d < time.Second) {
			c.reject(field, "", "%s must be 0 or at least 1s", field)
		}
	}
	if maxAge, ok := c.period("imageMaximumGCAge"); ok && maxAge > 0 {
		minAge, set := c.period("imageMinimumGCAge")
		if !set {
			minAge = 2 * time.Minute // the kubelet's default
		}
		if maxAge <= minAge {
			c.reject("imageMaximumGCAge", "", "imageMaximumGCAge (%s) must be more than imageMinimumGCAge (%s)", maxAge, minAge)
		}
	}
}

// enforcements maps the allowed entries of enforceNodeAllocatable to the field that the entry needs, if any.
var enforcements = map[string]string{
	"none": "", "pods": "", "system-reserved": "systemReservedCgroup", "system-reserved-compressible": "systemReservedCgroup",
	"kube-reserved": "kubeReservedCgroup", "kube-reserved-compressible": "kubeReservedCgroup",
}

func (c *configCheck) checkEnforcement() {
	listed, _ := c.start.Config["enforceNodeAllocatable"].([]any)
	for _, entry := range listed {
		name, isText := entry.(string)
		needs, known := enforcements[name]
		switch {
		case !isText: // checkList reports this entry
		case !known:
			fix := ""
			if near := userdata.Nearest(name, []string{"kube-reserved", "none", "pods", "system-reserved"}); near != "" {
				fix = "write " + near
			}
			c.reject("enforceNodeAllocatable", fix,
				"an entry%s of enforceNodeAllocatable must be one of none, pods, system-reserved, kube-reserved",
				userdata.InParentheses(name))
		case needs != "" && !c.isSet(needs):
			c.reject("enforceNodeAllocatable", "set "+needs, "enforceNodeAllocatable has %s without %s", name, needs)
		case name == "none" && len(listed) > 1:
			c.reject("enforceNodeAllocatable", "remove the other entries", "enforceNodeAllocatable has none and other entries")
		}
	}
	for _, field := range []string{"systemReservedCgroup", "kubeReservedCgroup"} {
		if c.isSet(field) && c.isSet("reservedSystemCPUs") {
			c.reject(field, "remove one of them", "%s cannot be combined with reservedSystemCPUs", field)
		}
	}
}

func (c *configCheck) checkPulls() {
	serial, _ := c.start.Config["serializeImagePulls"].(bool)
	if parallel, ok := c.start.Config["maxParallelImagePulls"].(float64); ok && serial && parallel > 1 {
		c.reject("maxParallelImagePulls", "set serializeImagePulls to false",
			"maxParallelImagePulls must be 1 where serializeImagePulls is true")
	}
}

func (c *configCheck) isSet(field string) bool {
	s, _ := c.start.Config[field].(string)
	return s != ""
}

// DurationOf parses a duration; 0 if it is invalid.
func DurationOf(s string) time.Duration {
	d, _ := time.ParseDuration(s)
	return d
}
