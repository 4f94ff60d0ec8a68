package fargate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
)

// patchOperation is one operation of a JSON patch.
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ServeHTTP answers one AdmissionReview of a pod that is being created. A pod is assigned to Fargate only when it is
// created. A pod that matches no active profile keeps its scheduler.
func (f *Fargate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.isDown.Load() {
		http.Error(w, "the webhook is down", http.StatusServiceUnavailable)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, fmt.Sprintf("read AdmissionReview: %v", err), http.StatusBadRequest)
		return
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, fmt.Sprintf("read the pod: %v", err), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if profile, ok := selectProfile(f.profiles(), review.Request.Namespace, &pod); ok {
		patch, err := json.Marshal(assignmentPatch(&pod, profile))
		if err != nil {
			http.Error(w, fmt.Sprintf("write the patch: %v", err), http.StatusInternalServerError)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.Patch, review.Response.PatchType = patch, &kind
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // fails only if the API server has closed the connection
}

// selectProfile returns the name of the profile that assigns a pod to Fargate: the first active profile that selects
// the pod. If the pod has the label ProfileLabel, only the profile with that name is considered. selectProfile returns
// false if:
//
//   - no profile selects the pod
//   - the pod belongs to a DaemonSet
//   - the pod opts out of Fargate with the annotation ComputeType: ec2
func selectProfile(profiles []ekscluster.FargateProfile, namespace string, pod *corev1.Pod) (string, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "DaemonSet" || pod.Annotations[ComputeType] == "ec2" {
		return "", false
	}
	wanted := pod.Labels[ProfileLabel]
	i := slices.IndexFunc(profiles, func(p ekscluster.FargateProfile) bool {
		return p.Status == ekscluster.ProfileActive && (wanted == "" || wanted == p.Name) && p.Selects(namespace, pod.Labels)
	})
	if i < 0 {
		return "", false
	}
	return profiles[i].Name, true
}

// assignmentPatch returns the patch for a pod that is assigned to Fargate. EKS adds no toleration, because Fargate's
// scheduler does not need one.
func assignmentPatch(pod *corev1.Pod, profile string) []patchOperation {
	out := []patchOperation{{"add", "/spec/schedulerName", Scheduler}}
	if pod.Labels == nil {
		return append(out, patchOperation{"add", "/metadata/labels", map[string]string{ProfileLabel: profile}})
	}
	return append(out, patchOperation{"add", "/metadata/labels/" + strings.ReplaceAll(ProfileLabel, "/", "~1"), profile})
}
