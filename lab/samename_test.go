package lab_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/lab"
)

// TestCaseSameName tests user report case-3: another cluster of the account launches instances under the same name. The
// controller names the other cluster in events on NodePools, and joiner doctor names it in the first lines of its
// output. The other cluster's instances stay unchanged. A controller that is set to the name of another cluster changes
// nothing; the controller and joiner doctor report the wrong name. TestTwoClustersWithOneName runs two controllers with
// one name at the same time.
func TestCaseSameName(t *testing.T) {
	const name, otherUID = "samename", "0a1b2c3d-the-other-cluster"
	l := parallelLab(t, lab.Options{})
	joiner := program(t)
	joinerInstance, karpenterInstance := launchAs(t, l, otherUID), launchAs(t, l, "")
	before := tagsOf(l, joinerInstance, karpenterInstance)
	running := restartController(t, l)
	apply(t, l, class(l, name, "amiSelectorTerms: [{alias: al2023@latest}]"),
		pool(name, "", "{key: kubernetes.io/arch, operator: In, values: [amd64]}"),
		deployment("default", name, 1, "500m", "256Mi", "test: "+name))
	within(t, l, time.Minute, "the pod to run", func(ctx context.Context) (bool, error) {
		pods, err := l.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		return err == nil && len(pods.Items) == 1 && pods.Items[0].Status.Phase == corev1.PodRunning, err
	})
	awaitPoolEvent(t, l, name, "NamesakeSeen", "its uid is "+otherUID, joinerInstance)
	awaitPoolEvent(t, l, name, "NamesakeSeen", "Karpenter may have our name", karpenterInstance)

	printed, code, err := l.Doctor(t.Context(), joiner)
	t.Log("\n" + printed)
	checkFirstLines(t, printed, "ID-3 suspicious, certain", "another cluster in this account and region has the name "+l.Cluster, otherUID)
	if err != nil || code != 1 || !strings.Contains(printed, "ID-4 suspicious") || !strings.Contains(printed, "  fix   ") {
		t.Errorf("joiner doctor: exit status %d, error %v, want 1, and output with ID-4 and a fix", code, err)
	}
	if text := metricsOf(t, running); !strings.Contains(text, `joiner_identity_proven{mark="issuer"} 1`) ||
		!strings.Contains(text, "joiner_namesake_instances 1") {
		t.Error("want metrics with the issuer as proof of the name, and with one instance of the other cluster")
	}

	checkForeignName(t, l, joiner, name)
	if after := tagsOf(l, joinerInstance, karpenterInstance); !maps.EqualFunc(before, after, maps.Equal) {
		t.Errorf("instances of the other cluster were changed: their tags were %v, now %v", before, after)
	}
}

// checkForeignName starts a controller that is set to the name of another cluster of the account. The controller must
// fail, and the controller and joiner doctor must report why.
func checkForeignName(t *testing.T, l *lab.Lab, joiner, pool string) {
	t.Helper()
	const other = "other"
	l.Emulator.Do(func(w *world.World, now time.Time) {
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("of the other cluster")})
		if _, err := w.Region(l.Account, l.Region).EKS.CreateCluster(now, ekscluster.Cluster{
			Name: other, Version: "1.36", Endpoint: "https://0123456789ABCDEF.gr7." + l.Region + ".eks.amazonaws.com",
			CA:     base64.StdEncoding.EncodeToString(ca),
			Issuer: "https://oidc.eks." + l.Region + ".amazonaws.com/id/0123456789ABCDEF", AuthMode: ekscluster.AuthBoth,
			RoleARN: l.Roles.ARN("eksClusterRole"), VPCID: l.Estate.VPC.ID,
		}); err != nil {
			t.Fatal(err)
		}
	})
	_, err := iam.NewFromConfig(l.AWS()).PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: aws.String(lab.ControllerRole), PolicyName: aws.String("LookAtOther"),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"eks:DescribeCluster","Resource":"*"}]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.RunController(t.Context(), joiner, "DISABLE_LEADER_ELECTION=true", "CLUSTER_NAME="+other)
	if err == nil {
		c.Kill()
		t.Fatal("the controller runs with another cluster's name, want an error")
	}
	for _, want := range []string{`EKS cluster "other" in us-east-1 is not the cluster at https://`,
		"so nothing is changed", "correct --cluster-name (CLUSTER_NAME)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the controller failed with %v, want %q in it", err, want)
		}
	}
	awaitPoolEvent(t, l, pool, "WrongCluster", `EKS cluster "other"`, "issuer")
	printed, code := doctorAsOwner(t, l, joiner, "--cluster-name", other)
	t.Log("\n" + printed)
	checkFirstLines(t, printed, "ID-1 broken, certain", "the EKS cluster named other is not the cluster of the kubeconfig")
	if code != 1 || !strings.Contains(printed, "settings.clusterName (CLUSTER_NAME)") {
		t.Errorf("joiner doctor ended with %d, want 1, and output that names the setting to correct", code)
	}
}

// launchAs launches an instance with our cluster's name in the tags, as the controller of another cluster would. uid is
// the UID of the other cluster, as Joiner tags it. If uid is empty, the tags are like Karpenter's.
func launchAs(t *testing.T, l *lab.Lab, uid string) (instance string) {
	t.Helper()
	tags := map[string]string{"eks:eks-cluster-name": l.Cluster, "kubernetes.io/cluster/" + l.Cluster: "owned",
		"karpenter.sh/nodepool": "theirs", "karpenter.sh/nodeclaim": "theirs-1", "karpenter.k8s.aws/ec2nodeclass": "theirs"}
	if uid != "" {
		tags["joiner.sh/cluster-uid"] = uid
	}
	var list []ec2types.Tag
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, ec2types.Tag{Key: &k, Value: aws.String(tags[k])})
	}
	image := al2023(t, l)
	out, err := ec2.NewFromConfig(l.AWS()).RunInstances(t.Context(), &ec2.RunInstancesInput{
		ImageId: &image, InstanceType: ec2types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: &l.Estate.PrivateSubnets[0].ID, SecurityGroupIds: []string{l.Estate.NodeSG.ID},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance, Tags: list}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Instances[0].InstanceId
}

// tagsOf returns the tags of those of the given instances that are not terminated, by instance ID.
func tagsOf(l *lab.Lab, ids ...string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, i := range l.Instances() {
		if i.Alive() && slices.Contains(ids, i.ID) {
			out[i.ID] = maps.Clone(i.Tags)
		}
	}
	return out
}

// awaitPoolEvent waits for an event on a NodePool with the given reason, and with all texts in its message.
func awaitPoolEvent(t *testing.T, l *lab.Lab, pool, reason string, texts ...string) {
	t.Helper()
	within(t, l, time.Minute, "the event "+reason+" on NodePool "+pool, func(ctx context.Context) (bool, error) {
		events, err := l.Kube.CoreV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			lacksText := slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) })
			return e.Reason == reason && e.InvolvedObject.Kind == "NodePool" && e.InvolvedObject.Name == pool && !lacksText
		}), nil
	})
}

func metricsOf(t *testing.T, c *lab.Controller) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Metrics, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
