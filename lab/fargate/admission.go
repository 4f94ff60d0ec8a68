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

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// change is one operation of a JSON patch.
type change struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// ServeHTTP answers one AdmissionReview of a pod that is about to be made. This is the only moment at which a pod is given to
// Fargate: who matches no active profile now stays with the scheduler that it has.
func (f *Fargate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.deaf.Load() {
		http.Error(w, "there is nobody here", http.StatusServiceUnavailable)
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
	if profile, ok := chosen(f.profiles(), review.Request.Namespace, &pod); ok {
		patch, err := json.Marshal(given(&pod, profile))
		if err != nil {
			http.Error(w, fmt.Sprintf("write the patch: %v", err), http.StatusInternalServerError)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response.Patch, review.Response.PatchType = patch, &kind
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server is gone; there is nobody to tell
}

// chosen is the profile by which a pod is given to Fargate: of those that are active and select it the one that its label names, or
// else the first. A DaemonSet's pods are for nodes that there are, and a pod may say that it is for EC2.
func chosen(profiles []world.FargateProfile, namespace string, pod *corev1.Pod) (string, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "DaemonSet" || pod.Annotations[ComputeType] == "ec2" {
		return "", false
	}
	named := pod.Labels[ProfileLabel]
	i := slices.IndexFunc(profiles, func(p world.FargateProfile) bool {
		return p.Status == world.ProfileActive && (named == "" || named == p.Name) && p.Selects(namespace, pod.Labels)
	})
	if i < 0 {
		return "", false
	}
	return profiles[i].Name, true
}

// given is what is changed of a pod that is given to Fargate. EKS adds no toleration: Fargate's scheduler asks for none.
func given(pod *corev1.Pod, profile string) []change {
	out := []change{{"add", "/spec/schedulerName", Scheduler}}
	if pod.Labels == nil {
		return append(out, change{"add", "/metadata/labels", map[string]string{ProfileLabel: profile}})
	}
	return append(out, change{"add", "/metadata/labels/" + strings.ReplaceAll(ProfileLabel, "/", "~1"), profile})
}
