package repair

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joiner-sh/joiner/emulator"
	"github.com/joiner-sh/joiner/world"
)

// TestRoles: what is printed about roles and instance profiles is made as it is printed, and shown before.
func TestRoles(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w, _, err := world.New(now, world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	account := w.Account(emulator.DefaultAccount)
	for _, name := range []string{"node", "old"} {
		if _, err := account.CreateRole(now, world.Role{Name: name, TrustPolicy: `{"Version":"2012-10-17","Statement":[]}`}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = account.CreateProfile(now, world.Profile{Name: "nodes"})
	if err := errors.Join(err, account.AddRoleToProfile("nodes", "old")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&emulator.Server{World: w})
	t.Cleanup(server.Close)
	doors := Doors{AWS: NewAWS(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "x", "")}, "arn:aws:iam::1:user/jane")}
	const worker = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
	const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	const pass = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:PassRole","Resource":"*"}]}`
	changes, err := Plan(t.Context(), "aws iam attach-role-policy --role-name node --policy-arn "+worker+"\naws iam update-assume-role-policy --role-name node --policy-document '"+trust+"'\n"+
		"aws iam put-role-policy --role-name node --policy-name pass --policy-document '"+pass+"'\n"+
		"aws iam remove-role-from-instance-profile --instance-profile-name nodes --role-name old\naws iam add-role-to-instance-profile --instance-profile-name nodes --role-name node", doors)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) != 5 || !strings.Contains(changes[0].After, worker) || !strings.Contains(changes[1].Before, `"Statement":[]`) || !strings.Contains(changes[1].After, "ec2.amazonaws.com") ||
		changes[3].Before != "role: old\n" || changes[3].After != "" || changes[4].After != "role: node\n" {
		t.Errorf("%+v", changes)
	}
	if n, err := Apply(t.Context(), changes); n != 5 || err != nil {
		t.Fatalf("%d were made: %v", n, err)
	}
	role, err := account.Role("node")
	if err != nil || !slices.Contains(role.Policies, worker) || !strings.Contains(role.TrustPolicy, "ec2.amazonaws.com") {
		t.Errorf("the role is %+v, %v", role, err)
	}
	again, err := Plan(t.Context(), "aws iam add-role-to-instance-profile --instance-profile-name nodes --role-name node", doors)
	if err != nil || again[0].Before != "role: node\n" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := Plan(t.Context(), "aws iam add-role-to-instance-profile --instance-profile-name none --role-name node", doors); err == nil {
		t.Error("a profile that is not there has a role added")
	}
}

// TestEntries: an access entry is shown as it is and as it would be, made anew with another type, and not made twice.
func TestEntries(t *testing.T) {
	t.Parallel()
	w, estate, err := world.New(time.Now(), world.Setup{Account: emulator.DefaultAccount, Region: "us-east-1", Cluster: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = estate.Region.CreateCluster(time.Now(), world.Cluster{Name: "prod", Version: "1.33", Endpoint: "https://api.example", AuthMode: world.AuthAPI,
		VPCID: estate.VPC.ID, RoleARN: "arn:aws:iam::" + emulator.DefaultAccount + ":role/cluster"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Account(emulator.DefaultAccount).CreateRole(time.Now(), world.Role{Name: "node", TrustPolicy: `{"Version":"2012-10-17","Statement":[]}`}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&emulator.Server{World: w})
	t.Cleanup(server.Close)
	doors := Doors{AWS: NewAWS(aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(emulator.DefaultAccount, "x", "")}, "arn:aws:iam::1:user/jane")}
	role := "arn:aws:iam::" + emulator.DefaultAccount + ":role/node"
	where := " --cluster-name prod --region us-east-1 --principal-arn " + role
	create := "aws eks create-access-entry" + where + " --type "
	made := func(fix string) []Change {
		t.Helper()
		changes, err := Plan(t.Context(), fix, doors)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		return changes
	}
	first := made(create + "STANDARD")
	if first[0].Before != "" || first[0].After != "principal: "+role+"\ntype: STANDARD\n" || first[0].What != "access entry of "+role {
		t.Errorf("%+v", first[0])
	}
	both := made("aws eks delete-access-entry" + where + "\n" + create + "EC2_LINUX")
	if !strings.Contains(both[0].Before, "type: STANDARD") || both[0].After != "" || !strings.Contains(both[1].After, "type: EC2_LINUX") {
		t.Errorf("%+v", both)
	}
	again, err := Plan(t.Context(), create+"EC2_LINUX", doors)
	if err != nil || !strings.Contains(again[0].Before, "type: EC2_LINUX") {
		t.Fatalf("%+v, %v", again, err)
	}
	if n, err := Apply(t.Context(), again); n != 0 || err == nil {
		t.Errorf("made twice: %d, %v", n, err)
	}
	if _, err := Plan(t.Context(), strings.Replace(create, "us-east-1", "eu-west-1", 1)+"EC2_LINUX", doors); err == nil || !strings.Contains(err.Error(), "the fix is for eu-west-1") {
		t.Errorf("another region: %v", err)
	}
}
