package emulator_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-sh/joiner/internal/emulator/world"
	"github.com/joiner-sh/joiner/internal/emulator/world/identity"
)

// TestThrottling empties EC2's token bucket for RunInstances, and waits until it refills.
func TestThrottling(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.Throttle = world.EC2Throttle() })
	// The bucket has five tokens. Without an image, a call that is not throttled fails with MissingParameter.
	dry := &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), DryRun: aws.Bool(true)}
	codes := ""
	for range 7 {
		_, err := b.ec2.RunInstances(t.Context(), dry)
		codes += code(t, err) + " "
	}
	want := strings.Repeat("MissingParameter ", 5) + strings.Repeat("RequestLimitExceeded ", 2)
	if codes != want {
		t.Errorf("codes %q, want %q", codes, want)
	}
	if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); err != nil {
		t.Errorf("another action: %v, want no error", err)
	}
	b.advance(time.Second)
	if _, err := b.ec2.RunInstances(t.Context(), dry); code(t, err) != "MissingParameter" {
		t.Errorf("a second later: %v, want MissingParameter", err)
	}
}

// TestThrottled: Server.Throttled counts throttled calls, but no calls that fail for another reason.
func TestThrottled(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.Throttle = world.EC2Throttle() })
	for range 103 { // the bucket has 100 tokens
		if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{}); err != nil && code(t, err) != "RequestLimitExceeded" {
			t.Fatal(err)
		}
	}
	if _, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{VpcIds: []string{"vpc-0"}}); err == nil {
		t.Error("a call was not throttled, although the token bucket is empty")
	}
	b.advance(time.Minute)
	if _, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}}); err == nil {
		t.Error("no error for an unknown subnet, want one")
	}
	if calls, throttled := b.server.Calls(), b.server.Throttled(); calls["ec2:DescribeVpcs"] != 104 ||
		throttled["ec2:DescribeVpcs"] != 4 || len(throttled) != 1 {
		t.Errorf("calls %v, throttled %v; want 104 and 4 of ec2:DescribeVpcs", calls, throttled)
	}
}

// TestAnswerFaults checks injected errors, injected garbage, and that IAM, SSM, EKS and SQS each return their own code
// for an injected RequestLimitExceeded.
func TestAnswerFaults(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Do(func(w *world.World, _ time.Time) {
		w.Faults.CallErrors = []*world.CallError{
			{Call: "ec2:DescribeVpcs", Skip: 1, Count: 2, Status: 503, Code: "Unavailable", Message: "The service is unavailable."},
			{Call: "ec2:DescribeSubnets", Every: 2, Garbage: "<html>bad gateway</html>", Status: 502},
			{Call: "iam:*", Code: "RequestLimitExceeded"}, {Call: "ssm:*", Code: "RequestLimitExceeded"},
			{Call: "eks:*", Code: "RequestLimitExceeded"}, {Call: "sqs:*", Code: "RequestLimitExceeded"},
		}
	})
	var got []string
	for range 4 {
		_, err := b.ec2.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		got = append(got, code(t, err))
	}
	if text := strings.Join(got, ","); text != ",Unavailable,Unavailable," {
		t.Errorf("errors of DescribeVpcs: %q, want only the second and third call to fail", text)
	}
	for i := range 4 {
		_, err := b.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		if (err != nil) != (i%2 == 0) {
			t.Errorf("call %d of DescribeSubnets: %v, want an error in calls 0 and 2 only", i, err)
		}
	}
	_, err := b.iam.ListRoles(t.Context(), &iam.ListRolesInput{})
	throttled := []string{code(t, err)}
	_, err = b.ssm.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("x")})
	throttled = append(throttled, code(t, err))
	_, err = b.eks.ListClusters(t.Context(), &eks.ListClustersInput{})
	throttled = append(throttled, code(t, err))
	_, err = b.sqs.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	throttled = append(throttled, code(t, err))
	if text := strings.Join(throttled, ","); text != "Throttling,ThrottlingException,ThrottlingException,RequestThrottled" {
		t.Errorf("throttled: %s, want the throttling code of IAM, SSM, EKS and SQS", text)
	}
}

// TestDenied: Faults.Denials denies calls of a role, or of all callers.
func TestDenied(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createProfile(t, "p", "controller")
	var session identity.Session
	b.server.Do(func(w *world.World, now time.Time) {
		var err error
		if session, err = w.Account(account).AssumeRole(now, "controller", "test", time.Hour); err != nil {
			t.Error(err)
		}
		w.Faults.Denials = []world.Denial{{Call: "ec2:Create*", Role: "controller"}, {Call: "ssm:*"}}
	})
	in := fleet("none", 1)
	if _, err := b.ec2.CreateFleet(t.Context(), in); code(t, err) != "InvalidLaunchTemplateName.NotFoundException" {
		t.Errorf("CreateFleet by the administrator: %v, want InvalidLaunchTemplateName.NotFoundException", err)
	}
	b.use(b.config(session.AccessKey, session.SecretKey, session.Token))
	_, err := b.ec2.CreateFleet(t.Context(), in)
	if code(t, err) != "UnauthorizedOperation" ||
		!strings.Contains(err.Error(), "assumed-role/controller/test is not authorized to perform: ec2:CreateFleet") {
		t.Errorf("CreateFleet by the role: %v, want UnauthorizedOperation", err)
	}
	if _, err := b.ssm.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("x")}); code(t, err) != "AccessDeniedException" {
		t.Errorf("GetParameter by the role: %v, want AccessDeniedException", err)
	}
}

// TestReadLag: with Faults.ReadLag, EC2 lists new instances, changed states and new tags only after the lag.
func TestReadLag(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	b.server.Do(func(w *world.World, _ time.Time) { w.Faults.ReadLag = 5 * time.Second })
	out, err := b.ec2.CreateFleet(t.Context(), fleet(name, 1, b.override("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	id := out.Instances[0].InstanceIds[0]
	if _, err := b.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}); code(t,
		err) != "InvalidInstanceID.NotFound" {
		t.Errorf("directly after the launch: %v, want InvalidInstanceID.NotFound", err)
	}
	b.advance(2 * time.Second) // now the instance is running
	b.advance(4 * time.Second)
	if got := b.instances(t.Context(), t, id)[0].State.Name; got != "pending" {
		t.Errorf("after 6 s the API shows the state %s, want pending", got)
	}
	_, err = b.ec2.CreateTags(t.Context(),
		&ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("new"), Value: aws.String("1")}}})
	if err != nil {
		t.Fatal(err)
	}
	b.advance(4 * time.Second)
	i := b.instances(t.Context(), t, id)[0]
	for _, tag := range i.Tags {
		if *tag.Key == "new" {
			t.Error("the API shows a tag 4 s after it was set, want a lag of 5 s")
		}
	}
	if i.State.Name != "running" {
		t.Errorf("after 10 s the API shows the state %s, want running", i.State.Name)
	}
	b.advance(time.Second)
	tags, err := b.ec2.DescribeTags(t.Context(),
		&ec2.DescribeTagsInput{Filters: []types.Filter{{Name: aws.String("key"), Values: []string{"new"}}}})
	if err != nil || len(tags.Tags) != 1 {
		t.Errorf("5 s after a tag was set, the API shows %v, %v, want the tag", tags, err)
	}
}

// TestBoots checks the states and status checks of instances that start slowly, fail to start, skip their user data or
// lose their host.
func TestBoots(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	b.server.Do(func(w *world.World, _ time.Time) {
		w.Faults.BootFaults = []*world.BootFault{
			{Count: 1, Delay: time.Minute},
			{Count: 1, Fail: world.Reason{Code: "Client.InternalError", Message: "Client.InternalError: Client error on launch"}},
			{Count: 1, SkipsUserData: true},
		}
	})
	out, err := b.ec2.CreateFleet(t.Context(), fleet(name, 4, b.override("m5.large", 0)))
	if err != nil {
		t.Fatal(err)
	}
	ids := out.Instances[0].InstanceIds
	states := func() string {
		var s []string
		for _, i := range b.instances(t.Context(), t, ids...) {
			s = append(s, string(i.State.Name))
		}
		return strings.Join(s, " ")
	}
	b.advance(2 * time.Second)
	if got := states(); got != "pending terminated running running" {
		t.Errorf("after 2 s: %s, want a delayed, a failed and two running instances", got)
	}
	b.server.Do(func(w *world.World, now time.Time) {
		if w.SkipsUserData(ids[1]) || !w.SkipsUserData(ids[2]) || w.SkipsUserData(ids[3]) {
			t.Error("want only the third instance to skip its user data")
		}
		w.FailHost(now, ids[3])
		w.Impair(now, ids[2], world.InstanceCheck)
		w.ScheduleEvent(now, ids[2], "system-reboot", "a new host", now.Add(30*time.Second))
	})
	b.advance(time.Minute)
	if got := states(); got != "running terminated running terminated" {
		t.Errorf("after a minute: %s, want the second and the fourth terminated", got)
	}
	impaired, err := b.ec2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{
		Filters: []types.Filter{{Name: aws.String("instance-status.status"), Values: []string{"impaired"}}},
	})
	if err != nil || len(impaired.InstanceStatuses) != 1 || *impaired.InstanceStatuses[0].InstanceId != ids[2] {
		t.Fatalf("impaired instances: %+v, %v, want only the third", impaired, err)
	}
	if s := impaired.InstanceStatuses[0]; s.SystemStatus.Status != types.SummaryStatusOk || s.InstanceStatus.Details[0].ImpairedSince == nil ||
		len(s.Events) != 1 || *s.Events[0].Description != "[Completed] a new host" || s.Events[0].NotBefore == nil {
		t.Errorf("status of the impaired instance: %+v, want a healthy host and one completed event", s)
	}
}

// TestConcurrentCalls calls the server from ten goroutines, and lists the thousand instances that they launch.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	name := b.createTemplate(t, "joiner-a", types.RequestLaunchTemplateData{})
	var reported sync.Map // keys: instance ID followed by state
	b.server.OnInstance = func(i world.Instance) {
		reported.Store(i.ID+i.State, true)
		b.server.AppendConsole(i.ID, i.State+"\n") // OnInstance may call the server
	}
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if _, err := b.ec2.CreateFleet(t.Context(), fleet(name, 100, b.override("m5.large", 0))); err != nil {
				t.Error(err)
			}
			b.advance(100 * time.Millisecond)
			b.server.Calls()
			if _, err := b.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{MaxResults: aws.Int32(50)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	seen := b.instances(t.Context(), t)
	ids := map[string]bool{}
	ips := map[string]bool{}
	for _, i := range seen {
		ids[*i.InstanceId], ips[*i.PrivateIpAddress] = true, true
		if _, ok := reported.Load(*i.InstanceId + "pending"); !ok {
			t.Errorf("OnInstance was not called for the launch of %s", *i.InstanceId)
		}
	}
	if len(ids) != 1000 || len(ips) != 1000 {
		t.Errorf("%d ids and %d addresses, want 1000 of each", len(ids), len(ips))
	}
}
