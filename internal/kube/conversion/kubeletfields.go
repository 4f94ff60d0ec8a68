package conversion

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	awsv1 "github.com/joiner-sh/joiner/api/aws/v1"
)

// shape is the type of a kubelet setting, as text for messages.
type shape string

const (
	aBoolean  shape = "true or false"
	anInteger shape = "a whole number"
	aNumber   shape = "a number"
	aText     shape = "a text"
	aDuration shape = "a duration, for instance 30s"
	aList     shape = "a list"
	aTable    shape = "a table"
)

// furtherFields are the fields of the kubelet's KubeletConfiguration that have no field in awsv1.KubeletConfiguration,
// by their shape. Source: the reference of kubelet.config.k8s.io/v1beta1, Kubernetes 1.36.
var furtherFields = map[shape]string{
	aBoolean: `
		cgroupsPerQOS enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
		enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
		failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
		mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault
		serializeImagePulls serverTLSBootstrap singleProcessOOMKill
	`,
	anInteger: `
		containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS healthzPort iptablesDropBit
		iptablesMasqueradeBit kubeAPIBurst kubeAPIQPS maxOpenFiles maxParallelImagePulls nodeLeaseDurationSeconds
		nodeStatusMaxImages oomScoreAdj podPidsLimit port readOnlyPort registryBurst registryPullQPS
	`,
	aNumber: `
		memoryThrottlingFactor
	`,
	aText: `
		address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxSize
		containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
		imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup kubeletCgroups
		memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
		showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
		tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
	`,
	aDuration: `
		containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod
		fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
		nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
		streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
	`,
	aList: `
		allowedUnsafeSysctls enforceNodeAllocatable preloadedImagesVerificationAllowlist reservedMemory
		shutdownGracePeriodByPodPriority tlsCipherSuites tlsCurvePreferences
	`,
	aTable: `
		authentication authorization cpuManagerPolicyOptions crashLoopBackOff evictionMinimumReclaim featureGates
		logging memorySwap qosReserved staticPodURLHeader topologyManagerPolicyOptions tracing userNamespaces
	`,
}

// shapeOf returns the shape of a field in furtherFields; false if there is no such field.
func shapeOf(field string) (shape, bool) {
	for s, names := range furtherFields {
		for name := range strings.FieldsSeq(names) {
			if name == field {
				return s, true
			}
		}
	}
	return "", false
}

func kubeletFieldNames() []string {
	var out []string
	for _, names := range furtherFields {
		out = append(out, strings.Fields(names)...)
	}
	VisitFields(reflect.TypeFor[awsv1.KubeletConfiguration](), func(name string, _ reflect.Type) { out = append(out, name) })
	return out
}

// accepts reports whether a value in JSON has the shape. null has every shape, because it means an unset field.
func (s shape) accepts(value []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return false
	}
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return s == aBoolean
	case json.Number:
		_, err := v.Int64()
		return s == aNumber || s == anInteger && err == nil
	case []any:
		return s == aList
	case map[string]any:
		return s == aTable
	case string:
		if s == aDuration {
			_, err := time.ParseDuration(v)
			return err == nil
		}
		return s == aText
	}
	return false
}

// ElementType returns the type behind pointers and slices.
func ElementType(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	return typ
}

// VisitFields visits the fields of a struct, including those of embedded structs, with their JSON names.
func VisitFields(typ reflect.Type, visit func(name string, typ reflect.Type)) {
	if typ.Kind() != reflect.Struct {
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			VisitFields(ElementType(f.Type), visit)
		case name != "" && name != "-":
			visit(name, f.Type)
		}
	}
}
