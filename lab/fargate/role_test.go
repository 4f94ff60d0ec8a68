package fargate

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
	"github.com/joiner-sh/joiner/lab/authn"
)

const (
	account  = "111122223333"
	region   = "us-east-1"
	cluster  = "demo"
	roleARN  = "arn:aws:iam::" + account + ":role/execution"
	nodeName = "fargate-ip-10-0-0-9.ec2.internal"
	trust    = `{"Statement":[{"Effect":"Allow","Principal":{"Service":"` + Service + `"},"Action":"sts:AssumeRole"}]}`
	policy   = "arn:aws:iam::aws:policy/" + ExecutionPolicy
)

// newFargate returns a Fargate with an emulated AWS and a cluster's authenticator. If awsAuth is nil, there
// is no ConfigMap.
func newFargate(t *testing.T, mode string, awsAuth map[string]string) *Fargate {
	t.Helper()
	server := &emulator.Server{}
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	config := aws.Config{Region: region, BaseEndpoint: &http.URL, Credentials: credentials.NewStaticCredentialsProvider(account, "x", "")}
	hook := authn.New(authn.Options{Cluster: cluster, Region: region, Endpoint: http.URL, AWS: config,
		AWSAuth: func() (map[string]string, bool) { return awsAuth, awsAuth != nil }})
	f := New(Options{Account: account, Region: region, Cluster: cluster, Emulator: server, Review: hook.Review})
	f.do(t, func(w *world.World, now time.Time) error {
		if _, err := w.Account(account).CreateRole(now, identity.Role{Name: "execution", TrustPolicy: trust}); err != nil {
			return err
		}
		_, err := w.Region(account, region).EKS.CreateCluster(now, ekscluster.Cluster{Name: cluster, AuthMode: mode})
		return err
	})
	return f
}

func (f *Fargate) do(t *testing.T, change func(*world.World, time.Time) error) {
	t.Helper()
	f.Emulator.Do(func(w *world.World, now time.Time) {
		if err := change(w, now); err != nil {
			t.Error(err)
		}
	})
}

func attachPolicy(w *world.World, _ time.Time) error {
	return w.Account(account).AttachPolicy("execution", policy)
}

func createProfile(w *world.World, now time.Time) error {
	_, err := w.Region(account, region).EKS.CreateFargateProfile(now, cluster, ekscluster.FargateProfile{
		Name: "system", Role: roleARN, Selectors: []ekscluster.FargateSelector{{Namespace: "kube-system"}},
	})
	return err
}

// distrustFargate replaces the role by a role that EC2 instances can assume but Fargate cannot.
func distrustFargate(w *world.World, now time.Time) error {
	a := w.Account(account)
	for _, remove := range []func() error{func() error { return a.DetachPolicy("execution", policy) },
		func() error { return a.DeleteRole("execution") }} {
		if err := remove(); err != nil {
			return err
		}
	}
	_, err := a.CreateRole(now, identity.Role{Name: "execution", TrustPolicy: strings.Replace(trust, Service, "ec2.amazonaws.com", 1)})
	return err
}

func createEntry(kind string) func(*world.World, time.Time) error {
	return func(w *world.World, now time.Time) error {
		_, err := w.Region(account, region).EKS.CreateAccessEntry(now, cluster, ekscluster.AccessEntry{Principal: roleARN, Kind: kind})
		return err
	}
}

func mapRow(role, username, groups string) map[string]string {
	return map[string]string{"mapRoles": "- rolearn: " + role + "\n  username: " + username + "\n  groups: [" + groups + "]\n"}
}

// TestCheckRole checks which IAM permissions and which mapping a pod execution role needs in each authentication mode.
func TestCheckRole(t *testing.T) {
	t.Parallel()
	const groups = "system:bootstrappers, system:nodes, system:node-proxier"
	type step = func(*world.World, time.Time) error
	for name, c := range map[string]struct {
		mode    string
		awsAuth map[string]string
		steps   []step
		want    string // part of the error; empty: no error
	}{
		"access entry created with the profile": {ekscluster.AuthAPI, nil, []step{attachPolicy, createProfile}, ""},
		"access entry created by the user":      {ekscluster.AuthBoth, nil, []step{attachPolicy, createEntry(ekscluster.EntryFargateLinux)}, ""},
		"row of aws-auth": {ekscluster.AuthConfigMap,
			mapRow(roleARN, "system:node:{{SessionName}}", groups), []step{attachPolicy, createProfile}, ""},
		"profile creates no access entry in mode CONFIG_MAP": {ekscluster.AuthConfigMap, nil, []step{attachPolicy, createProfile},
			"ARN is not mapped"},
		"access entry of type EC2_LINUX": {ekscluster.AuthAPI, nil, []step{attachPolicy, createEntry(ekscluster.EntryEC2Linux)},
			"not an instance ID"},
		"row with the user of an EC2 node": {ekscluster.AuthConfigMap, mapRow(roleARN, "system:node:node", groups),
			[]step{attachPolicy}, "is authenticated as system:node:node"},
		"row without the group system:node-proxier": {ekscluster.AuthConfigMap,
			mapRow(roleARN, "system:node:{{SessionName}}", "system:nodes"), []step{attachPolicy}, "without group system:node-proxier"},
		"no policy": {ekscluster.AuthAPI, nil, []step{createProfile}, "lacks " + ExecutionPolicy},
		"role trusts another service": {ekscluster.AuthAPI, nil, []step{attachPolicy, createProfile, distrustFargate},
			"does not trust " + Service},
	} {
		f := newFargate(t, c.mode, c.awsAuth)
		for _, s := range c.steps {
			f.do(t, s)
		}
		err := f.checkRole(t.Context(), roleARN, nodeName)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestAdmission checks that a pod that a profile selects is assigned to Fargate, and that the webhook does not change
// other pods. While the webhook is down, it must change no pod.
func TestAdmission(t *testing.T) {
	t.Parallel()
	f := newFargate(t, ekscluster.AuthAPI, nil)
	f.do(t, createProfile)
	review := func(namespace string, labels map[string]string) (patch string, status int) {
		object, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1",
			Namespace: namespace, Object: runtime.RawExtension{Raw: object}}})
		if err != nil {
			t.Fatal(err)
		}
		response := httptest.NewRecorder()
		f.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), "POST", "/mutate", bytes.NewReader(body)))
		var got admissionv1.AdmissionReview
		if response.Code == 200 {
			if err := json.Unmarshal(response.Body.Bytes(), &got); err != nil || got.Response == nil || !got.Response.Allowed ||
				got.Response.UID != "1" {
				t.Fatalf("response %s, %v; want Allowed", response.Body, err)
			}
			return string(got.Response.Patch), response.Code
		}
		return "", response.Code
	}
	const scheduler = `{"op":"add","path":"/spec/schedulerName","value":"fargate-scheduler"}`
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		want      string
	}{
		{"default", nil, ""},
		{"kube-system", nil, "[" + scheduler + `,{"op":"add","path":"/metadata/labels","value":{"eks.amazonaws.com/fargate-profile":"system"}}]`},
		{"kube-system", map[string]string{"a": "b"},
			"[" + scheduler + `,{"op":"add","path":"/metadata/labels/eks.amazonaws.com~1fargate-profile","value":"system"}]`},
	} {
		if got, code := review(c.namespace, c.labels); got != c.want || code != 200 {
			t.Errorf("pod in %s with labels %v: status %d, patch %s, want 200 and %s", c.namespace, c.labels, code, got, c.want)
		}
	}
	f.SetDown(true)
	if got, code := review("kube-system", nil); got != "" || code != 503 {
		t.Errorf("the webhook is down: status %d, patch %s, want 503 and none", code, got)
	}
}
