package poolhealth

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonOfCheck returns the condition reason of a check: "ARCH_3" for "ARCH-3".
func ReasonOfCheck(check string) string { return strings.ReplaceAll(check, "-", "_") }

var checkReason = regexp.MustCompile(`^[A-Z]+_[0-9]+$`)

// IsOfCheck reports whether a condition reports the finding of a check.
func IsOfCheck(c metav1.Condition) bool { return checkReason.MatchString(c.Reason) }

func checkOfReason(reason string) string { return strings.ReplaceAll(reason, "_", "-") }
