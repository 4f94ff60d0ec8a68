package v1

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// KubeletConfiguration has the kubelet settings that a node class can change, under the kubelet's names. Settings that
// affect the allocatable resources of a node or its user data have a field; More has all other settings.
//
// +kubebuilder:validation:XValidation:rule="has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ?  self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent  : true",message="imageGCHighThresholdPercent must be above imageGCLowThresholdPercent"
// +kubebuilder:validation:XValidation:rule="has(self.evictionSoft) ? self.evictionSoft.all(e, (e in self.evictionSoftGracePeriod)):true",message="each signal in evictionSoft needs a value in evictionSoftGracePeriod"
// +kubebuilder:validation:XValidation:rule="has(self.evictionSoftGracePeriod) ? self.evictionSoftGracePeriod.all(e, (e in self.evictionSoft)):true",message="each signal in evictionSoftGracePeriod needs a value in evictionSoft"
type KubeletConfiguration struct {
	// ClusterDNS are the addresses of the cluster's DNS. Omitted: they are read from the cluster.
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitzero"`
	// MaxPods is the maximum number of pods on a node. Omitted: the number of IP addresses of the instance type.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore is the maximum number of pods per vCPU. MaxPods still applies.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is reserved for the operating system: quantities of cpu, memory, ephemeral-storage, pid.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",message="systemReserved accepts only cpu, memory, ephemeral-storage and pid"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !self[x].startsWith('-'))",message="systemReserved values cannot be negative"
	// +optional
	SystemReserved map[string]string `json:"systemReserved,omitzero"`
	// KubeReserved is reserved for the kubelet and the container runtime: quantities of cpu, memory, ephemeral-storage,
	// pid.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')",message="kubeReserved accepts only cpu, memory, ephemeral-storage and pid"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !self[x].startsWith('-'))",message="kubeReserved values cannot be negative"
	// +optional
	KubeReserved map[string]string `json:"kubeReserved,omitzero"`
	// EvictionHard has the thresholds of immediate eviction: signal to quantity or percentage.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",message="evictionHard accepts only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitzero"`
	// EvictionSoft has the thresholds of eviction after a grace period: signal to quantity or percentage.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",message="evictionSoft accepts only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitzero"`
	// EvictionSoftGracePeriod is the grace period of each signal in EvictionSoft. The schema accepts any text, so a value
	// is possibly not a valid duration.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])",message="evictionSoftGracePeriod accepts only memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionSoftGracePeriod map[string]string `json:"evictionSoftGracePeriod,omitzero" hash:"duration"`
	// EvictionMaxPodGracePeriod is the longest termination grace period, in seconds, of a pod that a soft threshold evicts.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage, in percent, above which images are deleted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage, in percent, down to which images are deleted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota is whether CPU limits are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// More has the other fields of the kubelet's KubeletConfiguration (kubelet.config.k8s.io/v1beta1), by name, with
	// their JSON values. Only AL2023 passes them to the kubelet. Karpenter drops them, so its drift hash does not
	// include them.
	More map[string]runtime.RawExtension `json:"-" hash:"ignore"`
}

// methodless is KubeletConfiguration without the methods below, which pass it to encoding/json to avoid recursion.
type methodless KubeletConfiguration

// UnmarshalJSON puts settings that have no field into More.
func (k *KubeletConfiguration) UnmarshalJSON(data []byte) error {
	var out methodless
	if err := json.Unmarshal(data, &out); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	names := fieldNames()
	for name, value := range all {
		if slices.Contains(names, name) {
			continue
		}
		if out.More == nil {
			out.More = map[string]runtime.RawExtension{}
		}
		out.More[name] = runtime.RawExtension{Raw: value}
	}
	*k = KubeletConfiguration(out)
	return nil
}

// MarshalJSON writes the fields and the entries of More into one object. An entry is ignored
// if a field with its name is encoded.
func (k KubeletConfiguration) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(methodless(k))
	if err != nil || len(k.More) == 0 {
		return data, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for name, value := range k.More {
		if _, ok := all[name]; !ok {
			all[name] = json.RawMessage(value.Raw)
		}
	}
	return json.Marshal(all)
}

// fieldNames returns the JSON names of the settings that have a field.
func fieldNames() []string {
	var out []string
	t := reflect.TypeFor[KubeletConfiguration]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			out = append(out, name)
		}
	}
	return out
}
