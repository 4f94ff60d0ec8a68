package remedy

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/internal/diagnosis/fix"
	"github.com/joiner-sh/joiner/internal/emulator"
	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/ekscluster"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// TestRoles: changes of roles and instance profiles are shown before they are made, and made as shown.
func TestRoles(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w, _, err := world.New(now, world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	account := w.Account(emulator.DefaultAccount)
	for _, name := range []string{"node", "old"} {
		if _, err := account.CreateRole(now, identity.Role{Name: name, TrustPolicy: `{"Version":"2012-10-17","Statement":[]}`}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = account.CreateProfile(now, identity.Profile{Name: "nodes"})
	if err := errors.Join(err, account.AddRoleToProfile("nodes", "old")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&emulator.Server{World: w})
	t.Cleanup(server.Close)
	clients := Clients{AWS: NewAWS(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "x", "")}, "arn:aws:iam::1:user/jane")}
	const worker = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
	role := fix.P("--role-name", fix.RoleName("node"))
	profile := fix.P("--instance-profile-name", fix.Profile("nodes"))
	policyDocument := func(statement fix.Fields) fix.Param {
		return fix.P("--policy-document", fix.Document(fix.Fields{"Version": fix.Text("2012-10-17"), "Statement": fix.List{statement}}))
	}
	changes, err := Plan(t.Context(), fix.New("", fix.Call("iam", "attach-role-policy", role, fix.P("--policy-arn", fix.Policy(worker))),
		fix.Call("iam", "update-assume-role-policy", role,
			policyDocument(fix.Fields{"Effect": fix.Text("Allow"), "Principal": fix.Fields{"Service": fix.Text("ec2.amazonaws.com")},
				"Action": fix.Text("sts:AssumeRole")})),
		fix.Call("iam", "put-role-policy", role, fix.P("--policy-name", fix.PolicyName("pass")),
			policyDocument(fix.Fields{"Effect": fix.Text("Allow"), "Action": fix.Text("iam:PassRole"), "Resource": fix.Text("*")})),
		fix.Call("iam", "remove-role-from-instance-profile", profile, fix.P("--role-name", fix.RoleName("old"))),
		fix.Call("iam", "add-role-to-instance-profile", profile, role)), clients)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 5 || !strings.Contains(changes[0].After, worker) ||
		!strings.Contains(changes[1].Before, `"Statement":[]`) || !strings.Contains(changes[1].After, "ec2.amazonaws.com") ||
		changes[3].Before != "role: old\n" || changes[3].After != "" || changes[4].After != "role: node\n" {
		t.Errorf("changes %+v, want five with the states before and after", changes)
	}
	if n, err := Apply(t.Context(), changes); n != 5 || err != nil {
		t.Fatalf("%d changes were made, want 5: %v", n, err)
	}
	made, err := account.Role("node")
	if err != nil || !slices.Contains(made.Policies, worker) || !strings.Contains(made.TrustPolicy, "ec2.amazonaws.com") {
		t.Errorf("the role is %+v, %v, want the attached policy and trust of EC2", made, err)
	}
	again, err := Plan(t.Context(), fix.New("", fix.Call("iam", "add-role-to-instance-profile", profile, role)), clients)
	if err != nil || again[0].Before != "role: node\n" {
		t.Errorf("the change is %+v, %v, want the role node as the state before", again, err)
	}
	if _, err := Plan(t.Context(),
		fix.New("", fix.Call("iam", "add-role-to-instance-profile", fix.P("--instance-profile-name", fix.Profile("none")),
			role)), clients); err == nil {
		t.Error("Plan accepts an instance profile that does not exist")
	}
}

// TestEntries: an access entry is shown before and after, recreated with another type, and not created twice.
func TestEntries(t *testing.T) {
	t.Parallel()
	w, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = estate.Region.EKS.CreateCluster(time.Now(),
		ekscluster.Cluster{Name: "prod", Version: "1.33", Endpoint: "https://api.example", AuthMode: ekscluster.AuthAPI,
			VPCID: estate.VPC.ID, RoleARN: "arn:aws:iam::" + emulator.DefaultAccount + ":role/cluster"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Account(emulator.DefaultAccount).CreateRole(time.Now(),
		identity.Role{Name: "node", TrustPolicy: `{"Version":"2012-10-17","Statement":[]}`}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&emulator.Server{World: w})
	t.Cleanup(server.Close)
	clients := Clients{AWS: NewAWS(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "x", "")}, "arn:aws:iam::1:user/jane")}
	role := "arn:aws:iam::" + emulator.DefaultAccount + ":role/node"
	entryIn := func(region string) []fix.Param {
		return []fix.Param{fix.P("--cluster-name", fix.ClusterName("prod")), fix.P("--region", fix.Region(region)),
			fix.P("--principal-arn", fix.RoleARN(role))}
	}
	create := func(kind fix.Value, region string) fix.Step {
		return fix.Call("eks", "create-access-entry", append(entryIn(region), fix.P("--type", kind))...)
	}
	remove := func(kind string, created time.Time) fix.Step {
		return fix.Call("eks", "delete-access-entry", entryIn("us-east-1")...).Expecting(kind, created)
	}
	planAndApply := func(steps ...fix.Step) []Change {
		t.Helper()
		changes, err := Plan(t.Context(), fix.New("", steps...), clients)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		return changes
	}
	first := planAndApply(create(fix.Text("STANDARD"), "us-east-1"))
	if first[0].Before != "" || first[0].After != "principal: "+role+"\ntype: STANDARD\n" || first[0].What != "access entry of "+role {
		t.Errorf("change %+v, want the creation of an entry", first[0])
	}
	for why, step := range map[string]fix.Step{
		"its type is STANDARD, and was EC2_LINUX": remove("EC2_LINUX", time.Time{}),
		"the entry was recreated":                 remove("STANDARD", time.Now().Add(-time.Hour)),
	} {
		if _, err := Plan(t.Context(), fix.New("", step), clients); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("deletion of a changed entry: %v, want an error with %s", err, why)
		}
	}
	linux := create(fix.Text("EC2_LINUX"), "us-east-1")
	both := planAndApply(remove("STANDARD", time.Time{}), linux)
	if !strings.Contains(both[0].Before, "type: STANDARD") || both[0].After != "" || !strings.Contains(both[1].After, "type: EC2_LINUX") {
		t.Errorf("changes %+v, want the type to change from STANDARD to EC2_LINUX", both)
	}
	again, err := Plan(t.Context(), fix.New("", linux), clients)
	if err != nil || !strings.Contains(again[0].Before, "type: EC2_LINUX") {
		t.Fatalf("the change is %+v, %v, want the entry as the state before", again, err)
	}
	if n, err := Apply(t.Context(), again); n != 0 || err == nil {
		t.Errorf("the entry was created twice: %d changes, %v", n, err)
	}
	if _, err := Plan(t.Context(), fix.New("", create(fix.Text("EC2_LINUX"), "eu-west-1")), clients); err == nil ||
		!strings.Contains(err.Error(), "the fix is for eu-west-1") {
		t.Errorf("fix for another region: %v, want an error that names it", err)
	}
}
